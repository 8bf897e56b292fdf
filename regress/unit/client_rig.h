/*
 * client_rig: runs the workbox of the build against a server that answers
 * with what is written in the test, one answer a connection.
 */
#ifndef REGRESS_CLIENT_RIG_H
#define REGRESS_CLIENT_RIG_H

#include <sys/types.h>

/* Before check.h, which has a macro fail. */
#include "../../workbox/workbox.h"

#include <check.h>

/* ---- what a server says -------------------------------------------------- */

#define SID	"01K8AAAAAAAAAAAAAAAAAAAAAA"
#define START	"{\"start\":{\"sessionId\":\"" SID "\"}}\n"
#define END(c)	"{\"end\":{\"sessionId\":\"" SID "\",\"state\":\"ended\"," \
	"\"exitCode\":" #c ",\"signal\":null,\"reason\":null}}\n"
#define CHUNK(n, s) "{\"seq\":" #n ",\"stream\":\"stdout\",\"data\":\"" s \
	"\",\"encoding\":\"utf-8\"}\n"
#define NONE	"{\"code\":\"not-found\",\"detail\":\"no\"}"
#define JSON(st, b) "HTTP/1.1 " st " X\r\nContent-Type: application/json\r\n" \
	"Connection: close\r\n\r\n" b
/* All answers, each to the next connection; A(NULL): no connection. */
#define A(...)	(const char *const []){ __VA_ARGS__, NULL }

/* ---- how the program is run, until it is set anew ------------------------ */

extern int		 on_terminal;	/* all three: out has both */
extern int		 no_reader;	/* standard output is a pipe that
					   nobody reads */
extern const char	*term, *no_color;
/*
 * The text of the client file, %d in it the server's port; FIFO or DIR: it is
 * one; NULL: there is none.
 */
extern const char	*client_file;
extern mode_t		 client_mode;
extern int		 env_server;	/* WORKBOX_SERVER is given */

/* A directory of its own, to run in; 0, or -1. */
int	rig_make(void);
void	rig_sweep(void);

/* Runs `workbox WORDS' with the answers given; NULL ends both. */
void	with_words(const char *input, const char *const *answers,
	    const char *const *words);
void	with_input(const char *input, const char *const *answers, ...);

#define EXEC	"sandbox", "exec", "b", "--", "x", NULL

/* ---- what came of it ----------------------------------------------------- */

extern char	out[1 << 20], errout[65536];
extern char	asked[65536];		/* a line each: request, its body */
extern int	code;			/* of its exit, or 1000 + signal */

/*
 * NULL: not looked at.  All of the output; a part of what it said on standard
 * error ("": nothing) and of what it asked.
 */
void	expect(int want_code, const char *want_out, const char *in_err,
	    const char *in_asked);

/* One for each file. */
TCase	*exec_case(void);
TCase	*session_case(void);
TCase	*terminal_case(void);
TCase	*file_case(void);
TCase	*complete_case(void);

#endif
