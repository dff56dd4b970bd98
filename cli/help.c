/* The texts of `wq help`; wq(1) says more. */
#include "cli/help.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/base/say.h"

static const char overview[] =
    "usage: wq COMMAND [OPTION]...\n"
    "\n"
    "Runs a command for each key, one at a time per key: once more if the key was added while its\n"
    "command ran, and again with exponential backoff if it failed.\n"
    "\n"
    "  wq run [-j N] [OPTION]... -- COMMAND [ARG | {}]...   read keys and run the command for "
    "each\n"
    "\n"
    "With `wq run --socket PATH`, from other shells (by --socket, or in WQ_SOCKET; a NAME without\n"
    "a slash stands for $XDG_RUNTIME_DIR/wq/NAME, and `wq` is the default):\n"
    "\n"
    "  wq add [--after TIME] KEY...|-    add keys; -: from standard input; --wait: wait for them\n"
    "  wq status [--json]                print the state of the run\n"
    "  wq top                            show it live\n"
    "  wq ls [--state S] [--json]        list its keys\n"
    "  wq retry|cancel|forget KEY...     run now; cancel; forget failures\n"
    "  wq pause, wq resume               start no commands; start them again\n"
    "  wq set workers=N rate=N/s         change workers, rate, burst\n"
    "  wq wait [KEY...]                  wait until these keys, or all, are finished\n"
    "  wq drain, wq stop                 end after all keys; end after running ones\n"
    "\n"
    "  wq help COMMAND                   help for one command; man wq: the manual\n"
    "  wq --version\n";

/* All texts of a command follow each other: compilers need not take a literal of any length. */
static const struct {
	const char *command;
	const char *text;
} texts[] = {
    {"run",
     "usage: wq run [OPTION]... [--] COMMAND [ARG | {}]...\n"
     "\n"
     "Reads keys, one per line, and runs the command for each, one at a time per key. A key that\n"
     "is added while it is queued merges; one that is added while its command runs is run once\n"
     "more afterwards. At the end of the input all keys are finished.\n"
     "\n"
     "In COMMAND and ARG {} is the key, {.} the key without its extension, {/} its base name, "
     "{//}\n"
     "its directory, {/.} the base name without its extension, {value} its value, {#} the "
     "attempt,\n"
     "{%} the worker. Without any of the first five the key is the last argument. No shell is\n"
     "involved. The environment has WQ_KEY, WQ_VALUE, WQ_PRIORITY, WQ_GROUP, WQ_ATTEMPT, "
     "WQ_WORKER.\n"
     "\n"
     "Input\n"
     "  -0, --null                keys end with NUL instead of a line feed\n"
     "  -d, --delimiter=C         keys end with C\n"
     "      --value-after=C       lines are KEY, C, VALUE; --value-after='\\t': a tab\n"
     "      --merge=HOW           values of a key that merges: last, first, or, append or\n"
     "                            append:SEPARATOR (last)\n"
     "  -a, --arg-file=FILE       read FILE; -: standard input, also with --socket\n"
     "      --max-queue=N         stop reading while N keys are queued or waiting (100000)\n"
     "      --socket=PATH         take keys and commands from other processes; see wq help add\n"
     "                            a NAME without a slash: $XDG_RUNTIME_DIR/wq/NAME\n"
     "      --socket-mode=MODE    0660, 0666: let a group or all users add keys (0600)\n"
     "      --socket-group=GROUP  the group of the socket; the default mode is then 0660\n"
     "\n"
     "Commands\n"
     "  -j, --jobs=N              commands at once (the number of CPUs)\n"
     "  -n, --max-args=N          pass up to N keys to one command (1)\n"
     "      --timeout=TIME        terminate a command that runs for longer; that is a failure\n"
     "      --kill-after=TIME     kill it if it has not ended after TIME (5s)\n"
     "      --command-wait=TIME   wait for a command that cannot be executed any more (30s)\n"
     "      --rate=N/s            start at most N commands per second (also N/m, N/h)\n"
     "      --burst=N             start up to N at once after idle time (1)\n"
     "      --group-by=C[:N]      the group of a key is what stands before the N-th C: /:3 of a "
     "URL\n"
     "                            is its host; groups take turns\n"
     "      --group-jobs=N        commands at once for each group\n"
     "      --group-rate=N/s      start at most N commands per second for each group\n"
     "      --aging=TIME          raise the priority of a queued key by 1 after each TIME\n"
     "      --dry-run             print the commands, run none\n"
     "\n"},
    {"run",
     "Failures: after exit status 100 a key is dead; after any other it is retried\n"
     "      --retries=N           retry a key N times (3), or forever\n"
     "      --backoff=MIN..MAX    wait MIN, twice that, ... up to MAX (1s..5m)\n"
     "      --jitter[=KIND]       randomise these times: full, equal, decorrelated or none (none)\n"
     "      --halt=WHEN           stop when keys are dead: soon (running commands finish)\n"
     "                            or now (they are terminated), at the first, or as in\n"
     "                            soon,fail=3 or now,fail=10%; never (never)\n"
     "      --dead=FILE           append dead keys\n"
     "\n"
     "Events\n"
     "      --debounce=TIME       run a key TIME after its last add\n"
     "      --max-wait=TIME       but at the latest TIME after its first add\n"
     "\n"
     "Output: the output of a command is shown as a whole when it has ended\n"
     "  -k, --keep-order          show outputs in the order in which keys were added\n"
     "      --tag                 prefix each line with the key and a tab\n"
     "      --line-buffer         show each line at once\n"
     "      --results=DIR         write it to DIR/KEY/stdout and stderr instead\n"
     "      --log=FILE            append a JSON object for each attempt\n"
     "      --summary             print at the end what became of all keys\n"
     "      --no-progress         show no line of progress on a terminal\n"
     "  -q, --quiet               print errors only\n"
     "  -v, --verbose             print why attempts failed\n"
     "\n"
     "Monitoring\n"
     "      --http=ADDR           serve metrics and a page on a PORT or ADDRESS:PORT\n"
     "      --metrics-file=FILE   write metrics at the end\n"
     "      --name=NAME           the name of the queue, in both (wq)\n"
     "\n"
     "Stopping: TERM or INT once, running commands finish; twice, they are terminated\n"
     "      --on-term=drain       once: finish all keys that were added (finish)\n"
     "      --grace=TIME          twice: kill after TIME (10s)\n"
     "      --leftover=FILE       write unfinished keys, with their due times and failures\n"
     "  QUIT: kill them now; USR1, USR2: add, remove a worker\n"
     "\n"
     "Exit status: 0; 123 a key is dead; 75 stopped with unfinished keys; 126, 127 the\n"
     "command cannot be executed, does not exist; 2 usage; 1 any other error.\n"
     "\n"
     "  inotifywait -mr -e close_write --format '%w%f' in/ | wq run -j4 --debounce 100ms -- "
     "./convert {}\n"},
#define AT                                                                                         \
	"\nThe run is the one that listens on --socket=PATH or NAME (-s PATH), on $WQ_SOCKET, or " \
	"on\n"                                                                                     \
	"the name wq.\n"                                                                           \
	"  --timeout=TIME   exit with status 75 after TIME, 0: never; without it, if the run "     \
	"does\n"                                                                                   \
	"                   not respond for 10s\n"
    {"add", "usage: wq add [--socket=PATH] [--after=TIME] [--priority=N] [--value=TEXT] [--wait] "
            "KEY...|-\n\n"
            "Adds keys to a run, and waits while it is full. Any process can do\n"
            "that: each line that is written to the socket is a key, `echo KEY | nc -NU PATH`.\n"
            "  -              read keys from standard input, one per line\n"
            "  -0, --null     keys on standard input end with NUL\n"
            "  --after=TIME   run them after TIME\n"
            "  --priority=N   -32768 to 32767: higher runs sooner (0)\n"
            "  --value=TEXT   a value for the command: {value}, WQ_VALUE\n"
            "  --wait         wait until they are finished: exit status 0 all are done, 123 one\n"
            "                 is dead, 125 one was cancelled, 75 the run ended before\n"
            "  -v, --verbose  print how many keys there were, and how many merged\n"
            "  --             before a key that begins with a dash, or is one\n"
            "Exit status 1: a key was not added; the first such key is printed.\n" AT},
    {"status", "usage: wq status [--socket=PATH] [--json]\n\n"
               "Prints the state of a run. --json: as one JSON object.\n" AT},
    {"top", "usage: wq top [--socket=PATH] [--interval=TIME]\n\n"
            "Shows a run live: q quits, p pauses the run or resumes it. If standard output is\n"
            "not a terminal, the state is printed once.\n"
            "  --interval=TIME   refresh every TIME (1s)\n" AT},
    {"ls", "usage: wq ls [--socket=PATH] [--state=S] [--limit=N] [--json | -0]\n\n"
           "Lists keys: state, age or due time, failures (+: dirty, runs once more), key, and its\n"
           "priority, group and value, if it has them.\n"
           "  --state=S   queued, running or waiting; dead: those that died recently\n"
           "  --limit=N   at most N keys (1000); 0: all\n"
           "  --json      print a JSON object for each\n"
           "  -0, --null  print keys only, unchanged, each terminated by NUL\n" AT},
    {"retry", "usage: wq retry [--socket=PATH] KEY...\n\n"
              "Runs waiting keys now, and queues recently dead keys again.\n"
              "Exit status 1: a key is neither waiting nor dead.\n" AT},
    {"cancel",
     "usage: wq cancel [--socket=PATH] [--kill] KEY...\n\n"
     "Cancels keys in any state. A running command goes on, but its key is not run again.\n"
     "Exit status 1: no such key.\n"
     "  --kill   also terminate the command\n" AT},
    {"forget", "usage: wq forget [--socket=PATH] KEY...\n\n"
               "Forgets the failures of keys, and that they are dead.\n" AT},
    {"pause", "usage: wq pause [--socket=PATH]\n\nStarts no command until wq resume.\n" AT},
    {"resume", "usage: wq resume [--socket=PATH]\n\nStarts commands again.\n" AT},
    {"set", "usage: wq set [--socket=PATH] workers=N | rate=N/s | rate=none | burst=N ...\n\n"
            "Changes a run: all settings, or none if one is wrong. Running commands finish.\n" AT},
    {"wait",
     "usage: wq wait [--socket=PATH] [KEY...]\n\n"
     "Waits until these keys, or all keys, are finished. Exit status 123: one is dead, now or\n"
     "recently; 75: timed out, or the run ended before.\n" AT},
    {"drain",
     "usage: wq drain [--socket=PATH] [--no-wait]\n\n"
     "Drains a run: it refuses adds, finishes its keys, and ends. Waiting keys run when they\n"
     "are due. Exit status 0, even if keys are dead.\n"
     "  --no-wait   do not wait for the end of the run\n" AT},
    {"stop",
     "usage: wq stop [--socket=PATH] [--no-wait]\n\n"
     "Stops a run as SIGTERM does: running commands finish. Exit status 0, even if keys are\n"
     "unfinished.\n"
     "  --no-wait   do not wait for the end of the run\n" AT},
    {"help", "usage: wq help [COMMAND]\n"},
};

static int print(const char *text)
{
	if (fputs(text, stdout) >= 0 && fflush(stdout) == 0)
		return EXIT_OK;
	say("standard output: %s", strerror(errno));
	return EXIT_TROUBLE;
}

int help(const char *command)
{
	int rc = -1;

	if (!command)
		return print(overview);
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		if (strcmp(command, texts[i].command) == 0 && rc != EXIT_TROUBLE)
			rc = print(texts[i].text);
	if (rc >= 0)
		return rc;
	return usage(NULL, "%s: unknown command", shown(command, strlen(command)));
}
