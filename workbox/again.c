/*
 * again: what is asked once more when the server goes away, and the signals
 * that end that.
 *
 * A server that is restarted is back in a moment, which nobody needs to hear
 * of; one that is not is told of once, and when it is back.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <curl/curl.h>

#include "workbox.h"
#include "xmalloc.h"

#define TELL_MS		3000		/* away for so long: worth a line */
#define GIVE_UP_MS	60000		/* away for so long */
#define RETRIES		40		/* answers cut without progress */
#define STEADY_MS	10000		/* one that held so long was some */
#define STEP_MS		60000

static int	sig_pipe[2] = { -1, -1 };

int64_t
again_now(void)
{
	struct timespec	ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* ---- signals ----------------------------------------------------------- */

static void
on_signal(int num)
{
	unsigned char	c = (unsigned char)num;
	int		err = errno;
	ssize_t		n;

	n = write(sig_pipe[1], &c, 1);
	(void)n;	/* a full pipe has signals enough in it */
	errno = err;
}

int
signals_catch(void)
{
	static const int	nums[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction	sa, old;
	size_t			i;

	if (pipe(sig_pipe) == -1)
		abort();
	for (i = 0; i < 2; i++) {
		(void)fcntl(sig_pipe[i], F_SETFD, FD_CLOEXEC);
		(void)fcntl(sig_pipe[i], F_SETFL, O_NONBLOCK);
	}
	memset(&sa, 0, sizeof sa);
	sa.sa_handler = SIG_IGN;
	(void)sigaction(SIGPIPE, &sa, NULL);
	sa.sa_handler = on_signal;
	for (i = 0; i < sizeof nums / sizeof nums[0]; i++)
		if (sigaction(nums[i], NULL, &old) == 0 &&
		    old.sa_handler != SIG_IGN)	/* nohup stays nohup */
			(void)sigaction(nums[i], &sa, NULL);
	return sig_pipe[0];
}

int
signals_take(void)
{
	unsigned char	num;

	return sig_pipe[0] != -1 && read(sig_pipe[0], &num, 1) == 1 ? num : 0;
}

/* ---- away, and back ---------------------------------------------------- */

void
again_lost(struct again *a)
{
	if (a->since == 0)
		a->since = again_now();
}

void
again_back(struct again *a)
{
	if (a->told)
		note("connected again");
	a->told = 0;
	a->since = 0;
	a->met = 1;
}

int
again_ms(struct again *a, int ms)
{
	int64_t	left;

	if (a->since == 0 || a->told)
		return ms;
	left = a->since + TELL_MS - again_now();
	if (left > 0)
		return left < ms ? (int)left : ms;
	a->told = 1;
	note("%s is away, trying again", client_server());
	return ms;
}

/* ---- one request after another ----------------------------------------- */

/* Milliseconds until the deadline, at most ms. */
static int
until(const struct again *a, int ms)
{
	int64_t	left = a->deadline - again_now();

	return a->deadline == 0 || left > ms ? ms : left < 0 ? 0 : (int)left;
}

int
again_over(const struct again *a)
{
	return a->deadline != 0 && again_now() >= a->deadline;
}

void
again_start(struct again *a, struct req *r)
{
	a->begun = again_now();
	req_start(r);
}

int
again_run(struct again *a, struct req *r)
{
	struct curl_waitfd	w;

	memset(&w, 0, sizeof w);
	w.fd = sig_pipe[0];
	w.events = CURL_WAIT_POLLIN;
	again_start(a, r);
	while (!req_done(r) && a->sig == 0 && !again_over(a)) {
		multi_step(&w, w.fd != -1, until(a, again_ms(a, STEP_MS)));
		a->sig = signals_take();
		if (req_status(r) / 100 == 2)
			again_back(a);
	}
	return req_ok(r) ? 0 : -1;
}

int
again_delay(struct again *a, const struct req *r)
{
	int64_t		now = again_now();
	unsigned int	n;

	if (!req_unsent(r))
		a->met = 1;	/* cut, but it was there */
	if (req_status(r) / 100 == 2 && now - a->begun >= STEADY_MS)
		a->failed = 0;
	n = a->failed++;
	if (a->sig != 0 || again_over(a) || n >= RETRIES ||
	    (a->since != 0 && now - a->since >= GIVE_UP_MS) ||
	    (!req_ok(r) && !req_retry(r)) || (!a->met && req_unsent(r)))
		return -1;
	again_lost(a);
	return n < 5 ? 100 << n : 2000;
}

int
again_pause(struct again *a, const struct req *r)
{
	struct pollfd	pfd = { sig_pipe[0], POLLIN, 0 };
	int		ms = again_delay(a, r);
	int64_t		at = again_now() + ms, left;

	if (ms == -1)
		return 0;
	while ((left = at - again_now()) > 0 && a->sig == 0 && !again_over(a)) {
		(void)poll(&pfd, 1, until(a, again_ms(a, (int)left)));
		a->sig = signals_take();
	}
	return a->sig == 0 && !again_over(a);
}

/* What a problem document says, or NULL. */
static char *
said(const struct req *r)
{
	json_t		*j = req_answer(r);
	const char	*detail = json_str(j, "detail");
	char		*text = *detail == '\0' ? NULL :
			    xasprintf("%s (%s)", detail, json_str(j, "code"));

	json_decref(j);
	return text;
}

/* The last answer, and the first, where that had another reason. */
static int
made_none(const struct req *r, const char *first)
{
	auto_free char	*last = said(r);
	int		 rc = req_fail(r);

	if (first != NULL && (last == NULL || strcmp(first, last) != 0))
		note("%s answered first: %s", client_server(), first);
	return rc;
}

int
again_make(char *path, json_t *body, json_t **ret)
{
	auto_free char	*first = NULL;
	struct again	 a = { 0 };
	struct req	*r;
	char		 key[33];
	int		 rc = 0, more = 1;

	key_new(key);
	while (more) {
		r = req_new("POST", path);
		req_key(r, key);
		req_json(r, json_incref(body));
		more = 0;
		if (again_run(&a, r) == 0) {
			if ((*ret = req_answer(r)) == NULL)
				rc = fail("%s answered without JSON",
				    client_server());
		} else if (!again_pause(&a, r))
			rc = made_none(r, first);
		else {
			if (first == NULL)
				first = said(r);
			more = 1;
		}
		req_free(r);
	}
	json_decref(body);
	free(path);
	return rc;
}
