/*
 * runner_test.c: the real runner against tests that play apid, wb and the
 * box's processes, well-behaved and not.
 */
#include <stdio.h>

#include "runner_case.h"

int
main(void)
{
	Suite	*s = suite_create("runner");
	SRunner	*r;
	int	 failed;

	if (box_unable() != NULL) {
		(void)printf("skipped: %s\n", box_unable());
		return 77;
	}
	suite_add_tcase(s, case_hello());
	suite_add_tcase(s, case_session());
	suite_add_tcase(s, case_flow());
	suite_add_tcase(s, case_small());
	suite_add_tcase(s, case_end());
	suite_add_tcase(s, case_wb());
	suite_add_tcase(s, case_storm());
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	box_sweep();
	return failed == 0 ? 0 : 1;
}
