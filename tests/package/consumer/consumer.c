/*
 * A program that uses the installed library; compiled as C and as C++, from
 * pkg-config and from the CMake package.
 */
#include <stdio.h>
#include <string.h>
#include <wq.h>

int main(void)
{
	wq_item it;
	wq_queue *q;

	if (wq_version() != WQ_VERSION_NUMBER) {
		fprintf(stderr, "header %d, library %s\n", WQ_VERSION_NUMBER, wq_version_string());
		return 1;
	}
	if (wq_new(&q, NULL) != WQ_OK)
		return 2;
	if (wq_add_str(q, "a") != WQ_QUEUED || wq_add_str(q, "a") != WQ_MERGED)
		return 3;
	if (wq_get(q, &it) != WQ_OK || it.len != 1 || memcmp(it.key, "a", 2) != 0)
		return 4;
	if (wq_settle(q, &it, wq_again_after(0)) != WQ_QUEUED || wq_get(q, &it) != WQ_OK)
		return 5;
	if (wq_settle(q, &it, WQ_DONE) != WQ_OK || wq_shutdown(q) != WQ_OK)
		return 6;
	if (wq_free(q) != 0)
		return 7;
	if (wq_new(NULL, NULL) != WQ_EINVAL || strcmp(wq_last_error(), "out is NULL") != 0)
		return 8;
	printf("%s\n", wq_version_string());
	return 0;
}
