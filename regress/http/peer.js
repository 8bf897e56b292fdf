// peer.js SOCKET: node's own HTTP parser (llhttp), as a judge.  Tells in
// X-Seen what it was asked.
'use strict';
const http = require('http');
const crypto = require('crypto');
const server = http.createServer((req, res) => {
	const parts = [];
	req.on('data', (d) => parts.push(d));
	req.on('end', () => {
		const body = Buffer.concat(parts);
		res.setHeader('X-Seen', JSON.stringify({
			method: req.method,
			target: Buffer.from(req.url, 'latin1').toString('hex'),
			body: crypto.createHash('sha256').update(body).digest('hex'),
		}));
		res.end();
	});
});
server.headersTimeout = 1000;
server.requestTimeout = 1500;
server.connectionsCheckingInterval = 200;
server.listen({ path: process.argv[2], backlog: 511 },
    () => console.log('ready'));
