/* The texts of the statuses, and the version. Both are one list or one place, in the headers. */
#include <wq/status.h>
#include <wq/version.h>

#include <stddef.h>

#define STR(x) #x
#define XSTR(x) STR(x)

static const struct status {
	int number;
	const char *name;
	const char *text;
} statuses[] = {
#define ROW(name, number, text) {number, #name, text},
    WQ_STATUS_LIST(ROW)
#undef ROW
};

static const struct status *find(int number)
{
	for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++)
		if (statuses[i].number == number)
			return &statuses[i];
	return NULL;
}

const char *wq_strerror(int status)
{
	const struct status *s = find(status);

	return s ? s->text : "unknown status";
}

const char *wq_status_name(int status)
{
	const struct status *s = find(status);

	return s ? s->name : "?";
}

int wq_version(void)
{
	return WQ_VERSION_NUMBER;
}

const char *wq_version_string(void)
{
	return XSTR(WQ_VERSION_MAJOR) "." XSTR(WQ_VERSION_MINOR) "." XSTR(WQ_VERSION_PATCH);
}
