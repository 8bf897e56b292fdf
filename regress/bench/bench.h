/*
 * bench: the harness of all benches.  A figure is a ratio against a peer that
 * is run in turn with it (A B A B ...) in the same process.
 */
#ifndef BENCH_H
#define BENCH_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* One run: returns microseconds, or -1 after saying on stderr what failed. */
typedef double	bench_fn(void *arg);

struct bench_stat { double min, p50, p95; int n; };

double	bench_usec(void);			/* CLOCK_MONOTONIC */
void	bench_stat(double *v, int n, struct bench_stat *ret);	/* sorts v */
/* Runs a and b in turn, n pairs after w warm-ups; 0, or -1. */
int	bench_pairs(bench_fn *a, void *aa, bench_fn *b, void *ba, int w, int n,
	    struct bench_stat *ret_a, struct bench_stat *ret_b);
void	bench_head(void);
/* One line of the table: times in us, ratio of the medians. */
void	bench_row(const char *id, const char *what, const struct bench_stat *a,
	    const struct bench_stat *b, const char *peer, double file,
	    double end);
/*
 * The same of what is told as a rate, scale / time: more is better, and p95
 * and min are the rates of the slow and of the fastest run.
 */
void	bench_rate(const char *id, const char *what, double scale,
	    const struct bench_stat *a, const struct bench_stat *b,
	    const char *peer, double file, double end);
void	bench_value(const char *id, const char *what, const char *unit,
	    double a, double b, const char *peer, double file, double end);

/* A figure that has no peer. */
void	bench_alone(const char *id, const char *what, const char *unit,
	    double a, unsigned int n, double file, double end);

/* ---- a client: one keep-alive connection, answers read whole --------- */
struct http {
	int	 fd;
	char	*body;		/* owned: of the last answer, terminated */
	size_t	 len;
	char	 host[64];
	const char *accept;		/* borrowed; NULL: says nothing */
	char	 token[300];
};
int	http_open(struct http *, const char *host_port, const char *token);
void	http_shut(struct http *);
/* Status, or -1. */
int	http_call(struct http *, const char *method, const char *path,
	    const char *json);
/*
 * For answers that are read in parts: 0 when the request is sent, or -1; then
 * what comes off the wire, head, frames of chunks and all, as recv(2) tells.
 */
int	http_send(struct http *, const char *method, const char *path,
	    const char *json);
ssize_t	http_read(struct http *, char *buf, size_t n);
/*
 * Status of the answer at buf, which is terminated, once it is whole; else 0.
 * Not for answers in chunks.
 */
int	http_whole(const char *buf, size_t len);
/* Removes the frames of chunks in place; the length, or -1: not whole yet. */
ssize_t	http_unchunk(char *p, size_t len, char *out);
/* A member's text (string or number) of a flat answer, into a static. */
const char *http_member(const struct http *, const char *name);

/* ---- peers ------------------------------------------------------------ */

/* Spawns argv with standard output as a pipe: its reading end, or -1. */
int	peer_start(char *const argv[], pid_t *ret_pid);
/* The same; time until its first byte. */
double	peer_ready(char *const argv[], pid_t *ret_pid);
double	peer_whole(char *const argv[]);		/* until it has ended, ok */
void	peer_end(pid_t);			/* SIGKILL and wait */

/* The floor: what a box costs at the least, from clone3 to a byte of main. */
int	floor_init(const char *rootfs, const char *work);
double	floor_ready(void *);
void	floor_fini(void);

#endif
