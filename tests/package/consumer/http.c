/* A program that uses the second library as well. */
#include <stdio.h>
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
	printf("%s\n", wq_version_string());
	return 0;
}
