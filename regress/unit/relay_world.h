/*
 * relay_world.h: where the relay of relay_test.c runs: its child, the network
 * that it is in, what it calls, and what is told and counted of it.  Part of
 * that file.
 */
#ifndef REGRESS_RELAY_WORLD_H
#define REGRESS_RELAY_WORLD_H

#define HOST		"203.0.113.1"
#define HOLE		"192.0.2.1"
#define NOWHERE		"192.0.2.2"	/* refused by a route */
#define SLOW		"127.0.0.2"	/* the other of the proxy's */
#define MOST		160		/* connections of a box */
#define BULK		(48UL * 1024 * 1024)
#define PORTS		5

static const unsigned int	ports[PORTS] = { 22, 80, 443, 8443, 9 };

/* What the child tells, and is asked; shared. */
static struct shared {
	unsigned int	 n;
	struct told {
		enum denied_rule rule;
		unsigned int	 port;
		char		 name[ALLOW_NAME];
		int		 addressed;
	} told[64];
	uint64_t	 sent, received, connections;
	unsigned int	 open;
	uint64_t	 buffers;	/* of all connections to hosts */
	int		 trying;	/* such as are not there yet */
	unsigned int	 infos, warns;	/* lines of the log */
	char		 info[256];	/* the last */
	uint64_t	 later_ms;	/* its clock is ahead */
	int		 no_accept;	/* it has no descriptor left */
	unsigned int	 accepts, reads; /* that it had none; upstream_told() */
} *sh;

static int		ctl[2] = { -1, -1 };
static pid_t		child;
static struct event_base	*base;
static struct box	box;
static const char	*proxy;		/* of the configuration */
static unsigned int	of_all;		/* connections of all boxes */
static struct relay	*relays[PORTS];

/* ---- what the relay calls ------------------------------------------------ */

void
box_denied(struct box *b, enum denied_rule rule, const char *name,
    const uint8_t *addr, int v6, int proto, unsigned int port)
{
	struct told	*t = &sh->told[sh->n % 64];

	if (b != &box || proto != IPPROTO_TCP || v6 ||
	    (addr == NULL && name[0] == '\0'))
		errx(1, "a denial that is none");
	t->rule = rule;
	t->port = port;
	t->addressed = addr != NULL;
	(void)str_copy(t->name, name, sizeof(t->name));
	sh->n++;
}

/* ---- what is told, and counted, of the relay ------------------------ */

uint64_t	__real_mono_ms(void);
uint64_t	__wrap_mono_ms(void);
int		__real_accept4(int, struct sockaddr *, socklen_t *, int);
int		__wrap_accept4(int, struct sockaddr *, socklen_t *, int);
int		__real_upstream_told(const uint8_t *, size_t, size_t *);
int		__wrap_upstream_told(const uint8_t *, size_t, size_t *);
void		__wrap_log_info(const char *, ...)
		    __attribute__((format(printf, 1, 2)));
void		__wrap_log_warn(const char *, ...)
		    __attribute__((format(printf, 1, 2)));

uint64_t
__wrap_mono_ms(void)
{
	return __real_mono_ms() + sh->later_ms;
}

int
__wrap_accept4(int fd, struct sockaddr *sa, socklen_t *len, int flags)
{
	if (!sh->no_accept)
		return __real_accept4(fd, sa, len, flags);
	sh->accepts++;
	errno = EMFILE;
	return -1;
}

int
__wrap_upstream_told(const uint8_t *data, size_t n, size_t *ret_head)
{
	sh->reads++;
	return __real_upstream_told(data, n, ret_head);
}

void
__wrap_log_info(const char *fmt, ...)
{
	va_list	ap;

	va_start(ap, fmt);
	(void)vsnprintf(sh->info, sizeof(sh->info), fmt, ap);
	va_end(ap);
	sh->infos++;
}

void
__wrap_log_warn(const char *fmt, ...)
{
	(void)fmt;
	sh->warns++;
}

/* ---- names ---------------------------------------------------------- */

struct lookup {
	void	(*cb)(void *, const struct resolved *);
	void	 *arg;
	char	 name[ALLOW_NAME];
};

static void
add(struct resolved *r, const char *addr)
{
	int	i = r->n++;

	r->why = RESOLVED_OK;
	r->v6[i] = strchr(addr, ':') != NULL;
	if (inet_pton(r->v6[i] ? AF_INET6 : AF_INET, addr, r->addr[i]) != 1)
		errx(1, "%s", addr);
}

static void
on_lookup(evutil_socket_t fd, short what, void *arg)
{
	struct resolved	 r = { .why = RESOLVED_NONE };
	struct lookup	*l = arg;

	(void)fd;
	(void)what;
	if (strcmp(l->name, "sealed.example") == 0) {
		r.why = RESOLVED_SEALED;
		r.refused[0] = 10;
	} else if (strcmp(l->name, "eyes.example") == 0) {
		add(&r, "2001:db8::1");		/* there is no route */
		add(&r, HOLE);
		add(&r, HOST);
	} else if (strcmp(l->name, "holes.example") == 0) {
		add(&r, HOLE);
		add(&r, HOLE);
		add(&r, HOLE);
		add(&r, HOST);
	} else if (strcmp(l->name, "shut.example") == 0)
		add(&r, NOWHERE);
	else if (strcmp(l->name, "none.example") != 0) {
		if (strcmp(l->name, "proxy.example") == 0)
			add(&r, SLOW);
		add(&r, HOST);
	}
	if (l->cb != NULL)
		l->cb(l->arg, &r);
	free(l);
}

struct lookup *
resolve(const char *name, void (*cb)(void *, const struct resolved *),
    void *arg)
{
	const struct timeval	 tv = { 0, 1000 };
	struct lookup		*l = xcalloc(1, sizeof(*l));

	l->cb = cb;
	l->arg = arg;
	(void)str_copy(l->name, name, sizeof(l->name));
	if (event_base_once(base, -1, EV_TIMEOUT, on_lookup, l, &tv) == -1)
		errx(1, "event_base_once");
	return l;
}

/* Of a proxy: the host as well. */
struct lookup *
resolve_any(const char *name, void (*cb)(void *, const struct resolved *),
    void *arg)
{
	ck_assert_str_eq(name, "proxy.example");
	return resolve(name, cb, arg);
}

void
resolve_cancel(struct lookup *l)
{
	l->cb = NULL;
}

/* ---- the child ------------------------------------------------------ */

static struct allow *
list(int with_good)
{
	struct allow	*a = allow_new();
	const char	*more[] = { "eyes.example:8443", "none.example",
			    "sealed.example", "holes.example:8443",
			    "shut.example:443" };
	size_t		 i;

	if (with_good && allow_add(a, "good.example:22,80,443,8443") == -1)
		err(1, "allow_add");
	for (i = 0; i < sizeof(more) / sizeof(more[0]); i++)
		if (allow_add(a, more[i]) == -1)
			err(1, "allow_add");
	allow_done(a);
	return a;
}

/* The bounds of what may wait here, all hosts' together. */
static uint64_t
buffers(void)
{
	struct sockaddr_in	sin;
	socklen_t		len;
	uint64_t		all = 0;
	int			fd, n;

	for (fd = 0; fd < 1024; fd++) {
		len = sizeof(sin);
		if (getpeername(fd, (struct sockaddr *)&sin, &len) == -1 ||
		    sin.sin_family != AF_INET || sin.sin_port != htons(22))
			continue;
		len = sizeof(n);
		if (getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &n, &len) == 0)
			all += (uint64_t)n;
	}
	return all;
}

/* Sockets that have asked for a connection and have none yet. */
static int
trying(void)
{
	struct tcp_info	i;
	socklen_t	len;
	int		fd, n = 0;

	for (fd = 0; fd < 1024; fd++) {
		len = sizeof(i);
		n += getsockopt(fd, IPPROTO_TCP, TCP_INFO, &i, &len) == 0 &&
		    i.tcpi_state == TCP_SYN_SENT;
	}
	return n;
}

static void
on_ctl(evutil_socket_t fd, short what, void *arg)
{
	struct named	*n = names_find(box.names, "good.example");
	size_t		 i;
	char		 c;

	(void)what;
	(void)arg;
	if (read(fd, &c, 1) != 1 || c == 'Q')
		exit(0);
	if (c == 'J') {
		allow_free(box.allow);
		box.allow = list(0);
		for (i = 0; i < PORTS; i++)
			relay_judge(relays[i]);
	} else if (c == 'F')
		for (i = 0; i < PORTS; i++) {
			relay_free(relays[i]);
			relays[i] = NULL;
		}
	sh->buffers = buffers();
	sh->trying = trying();
	sh->sent = n->sent_bytes;
	sh->received = n->received_bytes;
	sh->connections = n->connections;
	sh->open = n->open;
	if (write(fd, &c, 1) != 1)
		err(1, "write");
}

static int
listener(const char *addr, unsigned int port, int backlog)
{
	struct sockaddr_in	 sin = { .sin_family = AF_INET,
				    .sin_port = htons((uint16_t)port) };
	int			 on = 1, fd = socket(AF_INET, SOCK_STREAM |
				    SOCK_CLOEXEC, 0);

	if (inet_pton(AF_INET, addr, &sin.sin_addr) != 1 || fd == -1 ||
	    setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) == -1 ||
	    bind(fd, (struct sockaddr *)&sin, sizeof(sin)) == -1 ||
	    listen(fd, backlog) == -1)
		err(1, "listen on %s:%u", addr, port);
	return fd;
}

static void
child_run(void)
{
	static const char	*names[] = { "good.example", "sealed.example",
				    "none.example", "eyes.example",
				    "other.example", "holes.example",
				    "shut.example" };
	static struct conf	 conf;
	struct event		*ev;
	size_t			 i;
	int			 fd;

	(void)str_copy(conf.upstream_proxy, proxy,
	    sizeof(conf.upstream_proxy));
	upstream_init(&conf);
	base = event_base_new();
	relay_init(base, MOST, of_all);
	box.names = names_new();
	names_room(box.names, 1, 100);
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names_give(box.names, names[i])->number != i + 1)
			errx(1, "numbers");
	box.allow = list(1);
	for (i = 0; i < PORTS; i++) {
		fd = listener("0.0.0.0", ports[i], 128);
		if (fcntl(fd, F_SETFL, O_NONBLOCK) == -1)
			err(1, "fcntl");
		relays[i] = relay_new(&box, fd);
	}
	ev = event_new(base, ctl[1], EV_READ | EV_PERSIST, on_ctl, NULL);
	(void)event_add(ev, NULL);
	if (write(ctl[1], "r", 1) != 1)
		err(1, "write");
	(void)event_base_dispatch(base);
	_exit(1);
}

static void
ask(char c)
{
	char	b;

	ck_assert_int_eq(write(ctl[0], &c, 1), 1);
	ck_assert_int_eq(read(ctl[0], &b, 1), 1);
}

static void
net(void)
{
	/* what goes to the hole comes to nobody, and nothing comes back */
	if (system("ip link set lo up && ip route add local 198.18.0.0/16 "
	    "dev lo && ip addr add " HOST "/32 dev lo && ip link add hole "
	    "type veth peer name deep && ip link set hole up && ip link set "
	    "deep up && ip route add " HOLE "/32 dev hole src " HOST " && "
	    "ip neigh add " HOLE " lladdr 02:00:00:00:00:01 dev hole && "
	    "ip route add unreachable " NOWHERE) != 0)
		errx(1, "ip");
}

static void
world(void)
{
	char	b;

	sh = mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE, MAP_SHARED |
	    MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(sh, MAP_FAILED);
	ck_assert_int_eq(unshare(CLONE_NEWNET), 0);
	net();
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0,
	    ctl), 0);
	if ((child = fork()) == 0)
		child_run();
	ck_assert_int_eq(read(ctl[0], &b, 1), 1);
}

static void
setup(void)
{
	proxy = "none";
	of_all = 1000;
	world();
}

static void
setup_narrow(void)
{
	proxy = "none";
	of_all = 8;
	world();
}

static void
setup_named(void)
{
	proxy = "http://proxy.example:3128";
	of_all = 1000;
	world();
}

static void
setup_numbered(void)
{
	proxy = "http://" HOST ":3128";
	of_all = 1000;
	world();
}

static void
teardown(void)
{
	int	st;

	ck_assert_int_eq(write(ctl[0], "Q", 1), 1);
	/* unless a sanitizer has found something */
	ck_assert_int_eq(waitpid(child, &st, 0), child);
	ck_assert_int_eq(st, 0);
}

#endif
