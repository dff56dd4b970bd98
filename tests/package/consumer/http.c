/* A program that uses the second library as well. */
#include <stdio.h>
#include <string.h>
#include <wq/http.h>

int main(void)
{
	wq_registry *r;
	wq_http *h;

	if (wq_registry_new(&r) != WQ_OK)
		return 1;
	if (wq_http_start(&h, &(wq_http_options){.registry = r}) != WQ_OK)
		return 2;
	if (wq_http_port(h) <= 0 || wq_http_stop(h) != WQ_OK || wq_registry_free(r) != WQ_OK)
		return 3;
	/* Both libraries have one place for the text. */
	if (wq_http_start(NULL, NULL) != WQ_EINVAL || strcmp(wq_last_error(), "out is NULL") != 0)
		return 4;
	printf("%s\n", wq_version_string());
	return 0;
}
