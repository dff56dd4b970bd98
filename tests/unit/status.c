/* Statuses: fixed numbers, each with a name and a text of its own. */
#include "../support/support.h"

/* Written down once more: a number that changed its meaning would break programs. */
static const struct {
	int number;
	const char *name;
} fixed[] = {
    {0, "WQ_OK"},         {1, "WQ_QUEUED"},        {2, "WQ_MERGED"},
    {3, "WQ_MARKED"},     {4, "WQ_DELAYED"},       {5, "WQ_MOVED"},
    {6, "WQ_KEPT"},       {-1, "WQ_EINVAL"},       {-2, "WQ_ENOMEM"},
    {-3, "WQ_ESHUTDOWN"}, {-4, "WQ_EFULL"},        {-5, "WQ_ETOOLONG"},
    {-6, "WQ_ETIMEDOUT"}, {-7, "WQ_EAGAIN"},       {-8, "WQ_EINTERRUPTED"},
    {-9, "WQ_ESTALE"},    {-10, "WQ_EOTHERQUEUE"}, {-11, "WQ_EBUSY"},
    {-12, "WQ_EDEADLK"},  {-13, "WQ_ENOTFOUND"},   {-14, "WQ_ENOTSUP"},
    {-15, "WQ_EVERSION"}, {-16, "WQ_EIO"},         {-17, "WQ_EEXIST"},
    {-18, "WQ_EFORKED"},  {7, "WQ_CANCELLED"},     {8, "WQ_LEFT"},
    {9, "WQ_DEAD"},
};

static void numbers_are_fixed(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTH(fixed); i++)
		assert_string_equal(wq_status_name(fixed[i].number), fixed[i].name);
}

static void each_has_a_text(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTH(fixed); i++) {
		const char *text = wq_strerror(fixed[i].number);

		assert_true(strlen(text) > 3);
		assert_int_not_equal(text[strlen(text) - 1], '.');
		assert_string_not_equal(text, "unknown status");
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(text, wq_strerror(fixed[j].number));
	}
}

static void unknown_ones(void **state)
{
	static const int unknown[] = {10, 100, -19, -100, INT32_MAX, INT32_MIN};

	(void)state;
	for (size_t i = 0; i < LENGTH(unknown); i++) {
		assert_string_equal(wq_strerror(unknown[i]), "unknown status");
		assert_string_equal(wq_status_name(unknown[i]), "?");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(numbers_are_fixed),
	    cmocka_unit_test(each_has_a_text),
	    cmocka_unit_test(unknown_ones),
	};

	return cmocka_run_group_tests_name("status", tests, NULL, NULL);
}
