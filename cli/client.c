#include "cli/client.h"
int client_main(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return 1;
}
