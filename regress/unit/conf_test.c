/*
 * conf_test: workbox.conf files and what becomes of them.
 *
 * conf/X.in is a configuration, conf/X.ok the words that differ from the
 * defaults, or the line that refuses it.  With WB_GOLDEN=write the .ok files
 * are written anew (and to be read by a person before they are committed).
 */
#include <netinet/in.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Before check.h, which has a macro fail. */
#include "../../workbox/host.h"
#include "xmalloc.h"

#include <check.h>

#ifndef WB_TOP_SRCDIR
#define WB_TOP_SRCDIR	"."
#endif

#define DIRECTORY	WB_TOP_SRCDIR "/regress/unit/conf"

static void
put_list(FILE *f, const char *word, const struct wire_list *l)
{
	size_t	i;

	if (l->n == 0)
		return;
	fprintf(f, "%s =", word);
	for (i = 0; i < l->n; i++)
		fprintf(f, " %.*s", (int)l->v[i].len,
		    (const char *)l->v[i].data);
	fprintf(f, "\n");
}

static void
put_conf(FILE *f, const struct conf *c, const struct conf *d)
{
#define C_STR(w, fl, max, cs, dflt, doc) \
	if (strcmp(c->fl, d->fl) != 0) \
		fprintf(f, "%s = %s\n", w, c->fl);
#define C_U64(w, fl, lo, hi, dflt, doc) \
	if (c->fl != d->fl) \
		fprintf(f, "%s = %llu\n", w, (unsigned long long)c->fl);
#define C_BOOL(w, fl, dflt, doc) \
	if (c->fl != d->fl) \
		fprintf(f, "%s = %s\n", w, c->fl ? "yes" : "no");
#define C_LIST(w, fl, n, bytes, cs, doc) \
	put_list(f, w, &c->fl);
#include "conf.def"
}

/* What a configuration becomes, as text. */
static char *
outcome(const char *name, const char *text, size_t len)
{
	static struct conf	 c, d;
	char			 why[CONFIG_WHY], *buf = NULL;
	size_t			 size;
	FILE			*f = open_memstream(&buf, &size);

	ck_assert_int_eq(config_parse("-", "", 0, &d, why), 0);
	if (config_parse(name, text, len, &c, why) == -1)
		fprintf(f, "%s\n", why);
	else {
		put_conf(f, &c, &d);
		if (config_check(&c, why) == -1)
			fprintf(f, "%s\n", why);
	}
	fclose(f);
	return buf;
}

static void
one_case(const char *name)
{
	char	*path, *in, *ok, *got;
	size_t	 len, oklen;
	FILE	*f;

	path = xasprintf("%s/%s", DIRECTORY, name);
	in = text_file(path, 65536, &len);
	ck_assert_ptr_nonnull(in);
	got = outcome(name, in, len);
	memcpy(path + strlen(path) - 3, ".ok", 4);
	if (getenv("WB_GOLDEN") != NULL) {
		f = fopen(path, "w");
		ck_assert_ptr_nonnull(f);
		fputs(got, f);
		fclose(f);
	}
	ok = text_file(path, 65536, &oklen);
	ck_assert_msg(ok != NULL, "%s is missing", path);
	ck_assert_msg(strcmp(got, ok) == 0, "%s:\n got: %s\nwant: %s", name,
	    got, ok);
	free(path);
	free(in);
	free(ok);
	free(got);
}

/* A refused configuration ends the program with all that it still held. */
const char	*__asan_default_options(void);

const char *
__asan_default_options(void)
{
	return "detect_leaks=0";
}

START_TEST(golden)
{
	const struct dirent	*e;
	DIR			*d = opendir(DIRECTORY);
	size_t			 len, n = 0;

	ck_assert_ptr_nonnull(d);
	setenv("WB_CONF_TEST", "/from/environment", 1);
	while ((e = readdir(d)) != NULL) {
		len = strlen(e->d_name);
		if (len < 4 || strcmp(e->d_name + len - 3, ".in") != 0)
			continue;
		one_case(e->d_name);
		n++;
	}
	closedir(d);
	ck_assert_uint_gt(n, 40);
}
END_TEST

/* etc/workbox.conf holds every word, as a comment, with its default. */
START_TEST(sample)
{
	static struct conf	 c, d;
	char			 why[CONFIG_WHY], *text, *p, *got = NULL;
	size_t			 len, size;
	FILE			*f;

	text = text_file(WB_TOP_SRCDIR "/etc/workbox.conf", 65536, &len);
	ck_assert_ptr_nonnull(text);
#define C_STR(w, fl, max, cs, dflt, doc) \
	ck_assert_msg(strcmp(w, "libexec-dir") == 0 || \
	    strstr(text, "\n#" w " =") != NULL, "no %s", w);
#define C_U64(w, fl, lo, hi, dflt, doc) \
	ck_assert_msg(strstr(text, "\n#" w " =") != NULL, "no %s", w);
#define C_BOOL(w, fl, dflt, doc)	C_U64(w, fl, 0, 1, dflt, doc)
#define C_LIST(w, fl, n, bytes, cs, doc) C_U64(w, fl, 0, 1, 0, doc)
#include "conf.def"
	for (p = text; (p = strstr(p, "\n#")) != NULL; p++)
		if (p[2] >= 'a' && p[2] <= 'z')
			p[1] = ' ';
	ck_assert_msg(config_parse("sample", text, len, &c, why) == 0, "%s",
	    why);
	ck_assert_uint_eq(c.listen.n, 2);
	c.listen.n = 0;
	ck_assert_int_eq(config_parse("-", "", 0, &d, why), 0);
	f = open_memstream(&got, &size);
	put_conf(f, &c, &d);
	fclose(f);
	ck_assert_str_eq(got, "");
	free(got);
	free(text);
}
END_TEST

/* What is parsed can be handed on: sealed, read back, the same. */
START_TEST(sealed)
{
	static struct conf	 c;
	static const char	 text[] = "listen = {127.0.0.1:1, \"[::1]:2\"}\n"
	    "default-memory = 64M\n";
	const struct conf	*back;
	char			 why[CONFIG_WHY];
	int			 fd;

	ck_assert_int_eq(config_parse("x", text, sizeof text - 1, &c, why),
	    0);
	c.uid_netd = c.gid_netd = c.uid_stored = c.gid_stored = 1;
	c.uid_apid = c.gid_apid = c.uid_proxyd = c.gid_proxyd = 1;
	fd = conf_seal(&c);
	ck_assert_msg(fd != -1, "%s", wire_error());
	back = conf_read(fd);
	ck_assert_ptr_nonnull(back);
	ck_assert_uint_eq(back->default_memory, 64 << 20);
	ck_assert_uint_eq(back->listen.n, 2);
	ck_assert_int_eq(write(fd, "x", 1), -1);
	close(fd);
}
END_TEST

START_TEST(listen_address)
{
	static const struct in6_addr	loop6 = IN6ADDR_LOOPBACK_INIT;
	struct sockaddr_storage		got;
	struct sockaddr_in		in4;
	struct sockaddr_in6		in6;

	ck_assert_int_eq(config_listen("127.0.0.1:8790", &got), 0);
	memcpy(&in4, &got, sizeof in4);
	ck_assert_int_eq(in4.sin_family, AF_INET);
	ck_assert_uint_eq(ntohl(in4.sin_addr.s_addr), INADDR_LOOPBACK);
	ck_assert_uint_eq(ntohs(in4.sin_port), 8790);
	ck_assert_int_eq(config_listen("[::1]:65535", &got), 0);
	memcpy(&in6, &got, sizeof in6);
	ck_assert_int_eq(in6.sin6_family, AF_INET6);
	ck_assert_mem_eq(&in6.sin6_addr, &loop6, 16);
	ck_assert_uint_eq(ntohs(in6.sin6_port), 65535);
	ck_assert_int_eq(config_listen("[::1]", &got), -1);
	ck_assert_int_eq(config_listen("127.0.0.1", &got), -1);
	ck_assert_int_eq(config_listen(":80", &got), -1);
	ck_assert_int_eq(config_listen("127.0.0.1:65536", &got), -1);
	ck_assert_int_eq(config_listen("127.0.0.1:080x", &got), -1);
	ck_assert_int_eq(config_listen("", &got), -1);
}
END_TEST

int
main(void)
{
	Suite	*s = suite_create("conf");
	TCase	*tc = tcase_create("conf");
	SRunner	*sr;
	int	 failed;

	tcase_add_test(tc, golden);
	tcase_add_test(tc, sample);
	tcase_add_test(tc, sealed);
	tcase_add_test(tc, listen_address);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed != 0;
}
