/* The program wq: which command is it? */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <wq/version.h>

#include "cli/base/say.h"
#include "cli/client/client.h"
#include "cli/help.h"
#include "cli/run.h"

static int help_main(int argc, char **argv)
{
	return help(argc > 1 ? argv[1] : NULL);
}

static const struct {
	const char *name;
	int (*main)(int argc, char **argv);
} commands[] = {
    {"run", run_main},       {"add", client_main},    {"status", client_main},
    {"top", client_main},    {"ls", client_main},     {"retry", client_main},
    {"cancel", client_main}, {"forget", client_main}, {"pause", client_main},
    {"resume", client_main}, {"set", client_main},    {"wait", client_main},
    {"drain", client_main},  {"stop", client_main},   {"help", help_main},
};

/* A file of ours must not become one of the first three, which may have been closed: whoever uses
 * these gets an error as before. */
static void occupy(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			(void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

int main(int argc, char **argv)
{
	occupy();
	if (argc < 2)
		return usage(NULL, "no command is given: run, add, status, top, ls ...");
	if (strcmp(argv[1], "--version") == 0) {
		printf("wq %s\n", wq_version_string());
		return fflush(stdout) == 0 ? EXIT_OK : EXIT_TROUBLE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		return help(NULL);
	for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
		if (strcmp(argv[1], commands[i].name) == 0)
			return commands[i].main(argc - 1, argv + 1);
	if (argv[1][0] == '-')
		return usage(
		    NULL,
		    "%s: options stand behind the command: wq run -j4 ..., wq status --socket=PATH",
		    shown(argv[1], strlen(argv[1])));
	return usage(NULL, "%s: unknown command", shown(argv[1], strlen(argv[1])));
}
