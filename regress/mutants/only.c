/*
 * only.c: linked into the tests that run.sh builds, in the place of Check's
 * function of that name: with WB_ONLY in the environment one test is run.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

void	__real__tcase_add_test(TCase *, const TTest *, int, int, int, int);
void	__wrap__tcase_add_test(TCase *, const TTest *, int, int, int, int);

void
__wrap__tcase_add_test(TCase *tc, const TTest *t, int sig, int ret, int from,
    int to)
{
	const char	*only = getenv("WB_ONLY");

	if (only == NULL || strcmp(only, t->name) == 0)
		__real__tcase_add_test(tc, t, sig, ret, from, to);
}
