// npm.js DIRECTORY: for P31, a package's `npm ci' from a registry of its own.
//
// The first time it makes 200 packages of 20 files and who needs them all, with
// a lock file.  Then it serves them on 127.0.0.1, runs npm ci in DIRECTORY/app
// with an empty cache, and ends with npm's status.
'use strict';
const fs = require('fs'), http = require('http'), zlib = require('zlib');
const crypto = require('crypto'), { spawn } = require('child_process');
const port = 4873, packages = 200, files = 20;
const dir = process.argv[2], app = dir + '/app', store = dir + '/store';

// A file in a tar archive (POSIX.1, ustar).
function member(name, data) {
    const h = Buffer.alloc(512);
    h.write(name, 0);
    h.write('0000644\0' + '0000000\0' + '0000000\0', 100);
    h.write(data.length.toString(8).padStart(11, '0') + '\0', 124);
    h.write('00000000000\0' + ' '.repeat(8) + '0', 136);
    h.write('ustar\0' + '00', 257);
    let sum = 0;
    for (const b of h)
        sum += b;
    h.write(sum.toString(8).padStart(6, '0') + '\0 ', 148);
    return Buffer.concat([h, data, Buffer.alloc((512 - data.length % 512) % 512)]);
}

function make(name) {
    const parts = [member('package/package.json', Buffer.from(JSON.stringify(
        { name, version: '1.0.0', main: 'f0.js' })))];
    for (let i = 0; i < files; i++)
        parts.push(member(`package/f${i}.js`, Buffer.from(
            `// ${name}\n` + 'exports.x = 1;\n'.repeat(60))));
    parts.push(Buffer.alloc(1024));
    const tgz = zlib.gzipSync(Buffer.concat(parts));
    fs.writeFileSync(`${store}/${name}.tgz`, tgz);
    return { version: '1.0.0',
        resolved: `http://127.0.0.1:${port}/${name}.tgz`,
        integrity: 'sha512-' +
            crypto.createHash('sha512').update(tgz).digest('base64') };
}

function prepare() {
    const names = [...Array(packages).keys()].map(i => 'part' + i);
    const root = { name: 'app', version: '1.0.0',
        dependencies: Object.fromEntries(names.map(n => [n, '1.0.0'])) };
    fs.mkdirSync(app, { recursive: true });
    fs.mkdirSync(store);
    fs.writeFileSync(app + '/package.json', JSON.stringify(root));
    fs.writeFileSync(app + '/package-lock.json', JSON.stringify({ ...root,
        lockfileVersion: 3, requires: true,
        packages: { '': root, ...Object.fromEntries(
            names.map(n => ['node_modules/' + n, make(n)])) } }));
}

if (!fs.existsSync(store))
    prepare();
fs.rmSync(app + '/node_modules', { recursive: true, force: true });
fs.rmSync(dir + '/cache', { recursive: true, force: true });
http.createServer((q, a) => fs.createReadStream(store + q.url).on('error',
    () => a.writeHead(404).end()).pipe(a)).listen(port, '127.0.0.1', () =>
    spawn('npm', ['ci', '--registry', `http://127.0.0.1:${port}/`, '--cache',
        dir + '/cache', '--no-audit', '--no-fund', '--no-update-notifier',
        '--loglevel', 'error'], { cwd: app, stdio: ['ignore', 'ignore', 2] })
    .on('exit', status => {
        const n = fs.readdirSync(app + '/node_modules').length;
        process.exit(status === 0 && n >= packages ? 0 : 1);
    }));
