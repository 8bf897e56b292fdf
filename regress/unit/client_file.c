/*
 * client_file.c: client_test, the client file, who may write it, and how large
 * it and others may be.
 */
#include <sys/types.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client_rig.h"
#include "xmalloc.h"

START_TEST(client_files)
{
	/* The file's server, where neither option nor environment names one. */
	env_server = 0;
	client_file = "server = http://127.0.0.1:%d\n"
	    "default-rootfs = special\n";
	with_input("", A(JSON("201", "{}")), "sandbox", "create", NULL);
	expect(0, "{}\n", "", "{\"rootfs\":\"special\"}");
	with_input("", A(JSON("201", "{}")), "sandbox", "create", "--rootfs",
	    "other", NULL);
	expect(0, "{}\n", "", "{\"rootfs\":\"other\"}");
	client_file = "server = http://127.0.0.1:1\n";
	with_input("", A(JSON("200", "{}")), "sandbox", "inspect", "a", NULL);
	expect(125, "", "reach http://127.0.0.1:1: ", NULL);
	env_server = 1;		/* before the file */
	with_input("", A(JSON("200", "{}")), "sandbox", "inspect", "a", NULL);
	expect(0, "{}\n", "", NULL);
	with_input("", A(JSON("200", "{}")), "sandbox", "inspect", "a",
	    "--server", "unix:/nonexistent", NULL);
	expect(125, "", "reach unix:/nonexistent: ", NULL);
	/* Faults name the file, the line and the key. */
	env_server = 0;
	client_file = "\nserver = ftp://x\n";
	with_input("", A(NULL), "sandbox", "list", NULL);
	expect(125, "", "/conf/workbox/config:2: server: expected http://",
	    NULL);
	client_file = "sevrer = x\n";
	with_input("", A(NULL), "sandbox", "list", NULL);
	expect(125, "", "/conf/workbox/config:1: there is no key \"sevrer\"; "
	    "did you mean server?", NULL);
	client_file = "server = https://127.0.0.1:1\ncacert = /nonexistent\n";
	with_input("", A(NULL), "sandbox", "list", NULL);
	expect(125, "", "/conf/workbox/config:2: cacert /nonexistent: No such "
	    "file", NULL);
	/* The environment's key comes before the file's. */
	client_file = "server = http://127.0.0.1:%d\n"
	    "token-file = /nonexistent\n";
	with_input("", A(JSON("200", "{}")), "sandbox", "inspect", "a", NULL);
	expect(0, "{}\n", "", NULL);
}
END_TEST

/* Who can write the file can have the key: nobody else may. */
START_TEST(client_files_refused)
{
	static const mode_t	modes[] = { 0620, 0602, 0666 };
	size_t			i;

	client_file = "server = http://127.0.0.1:%d\n";
	for (i = 0; i < sizeof modes / sizeof modes[0]; i++) {
		client_mode = modes[i];
		with_input("", A(JSON("200", "{}")), "sandbox", "inspect",
		    "a", NULL);
		expect(125, "", "/config: others than its owner can write it: "
		    "chmod go-w ", NULL);
		ck_assert_str_eq(asked, "");
	}
	client_mode = 0644;
	with_input("", A(JSON("200", "{}")), "sandbox", "inspect", "a", NULL);
	expect(0, "{}\n", "", NULL);
	/* A FIFO is not waited for, a directory not read. */
	client_file = "FIFO";
	with_input("", A(NULL), "sandbox", "inspect", "a", NULL);
	expect(125, "", "/config: expected a regular file\n", NULL);
	client_file = "DIR";
	with_input("", A(NULL), "sandbox", "inspect", "a", NULL);
	expect(125, "", "/config: expected a regular file\n", NULL);
	client_file = NULL;
	with_input("", A(JSON("200", "{}")), "sandbox", "inspect", "a", NULL);
	expect(0, "{}\n", "", NULL);
}
END_TEST

/* n bytes of a comment, in a file of that name where one is given. */
static char *
comment(const char *name, size_t n)
{
	char	*text = xmalloc(n + 1);
	FILE	*f;

	memset(text, '#', n);
	text[n - 1] = '\n';
	text[n] = '\0';
	if (name != NULL) {
		ck_assert_ptr_nonnull(f = fopen(name, "w"));
		ck_assert_uint_eq(fwrite(text, 1, n, f), n);
		ck_assert_int_eq(fclose(f), 0);
	}
	return text;
}

/* As large as each may be, and a byte more. */
START_TEST(client_files_large)
{
	char	*text;
	size_t	 n;

	for (n = 65536; n <= 65537; n++) {
		client_file = text = comment(NULL, n);
		with_input("", A(JSON("200", "{}")), "sandbox", "inspect",
		    "a", NULL);
		if (n == 65536)
			expect(0, "{}\n", "", NULL);
		else
			expect(125, "", "/config: File too large\n", NULL);
		client_file = NULL;
		free(text);
	}
	for (n = 8 << 20; n <= (8 << 20) + 1; n++) {
		free(comment("hosts", n));
		with_input("", A(JSON("201", "{}")), "sandbox", "create",
		    "--network", "allowlist", "--allow-file", "hosts", NULL);
		if (n == 8 << 20)
			expect(0, "{}\n", NULL, NULL);
		else
			expect(125, "", "hosts: File too large\n", NULL);
	}
	free(comment("key", 4097));
	with_input("", A(NULL), "sandbox", "inspect", "a", "--token-file",
	    "key", NULL);
	expect(125, "", "--token-file key: File too large\n", NULL);
}
END_TEST

TCase *
file_case(void)
{
	TCase	*tc = tcase_create("file");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, client_files);
	tcase_add_test(tc, client_files_refused);
	tcase_add_test(tc, client_files_large);
	return tc;
}
