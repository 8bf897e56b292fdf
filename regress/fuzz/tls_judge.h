/*
 * tls_judge: which name OpenSSL, as a server, reads in a ClientHello.
 */
#ifndef REGRESS_TLS_JUDGE_H
#define REGRESS_TLS_JUDGE_H

#include <stddef.h>
#include <stdint.h>

/*
 * n bytes that a client sends.  1: it takes the hello, and *ret_name is the
 * host's, as it came; 0: it takes it, and sees no name; -1: it does not take
 * it (yet).
 */
int	tls_judge(const uint8_t *, size_t n, char ret_name[256]);

#endif
