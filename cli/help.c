/* The texts of `wq help`; wq(1) says more. */
#include "cli/help.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/base/say.h"

static const char overview[] =
    "usage: wq COMMAND [OPTION]...\n"
    "\n"
    "Runs a command for each key: one command per key at a time, once more if the key was given\n"
    "while its command ran, and again later if it failed.\n"
    "\n"
    "  wq run [-j N] [OPTION]... -- COMMAND [ARG | {}]...   read keys and run the command for "
    "each\n"
    "\n"
    "With `wq run --socket PATH`, from other shells (by --socket, or in WQ_SOCKET; a NAME without\n"
    "a slash stands for $XDG_RUNTIME_DIR/wq/NAME, and `wq` is the default):\n"
    "\n"
    "  wq add [--after TIME] KEY...|-    add keys; -: from standard input; --wait: wait for them\n"
    "  wq status [--json]                what the run does\n"
    "  wq top                            the same, live\n"
    "  wq ls [--state S] [--json]        list its keys\n"
    "  wq retry|cancel|forget KEY...     try now; cancel; forget failures\n"
    "  wq pause, wq resume               start no commands; start them again\n"
    "  wq set workers=N rate=N/s         change workers, rate, burst\n"
    "  wq wait [KEY...]                  until they, or all, are done\n"
    "  wq drain, wq stop                 end after all keys; end after running ones\n"
    "\n"
    "  wq help COMMAND                   help for one command; man wq: the manual\n"
    "  wq --version\n";

static const struct {
	const char *command;
	const char *text;
} texts[] = {
    {"run",
     "usage: wq run [OPTION]... [--] COMMAND [ARG | {}]...\n"
     "\n"
     "Reads keys, a line each, and runs the command for each key, no key twice at once. A key "
     "that\n"
     "is given while it waits merges; one that is given while its command runs is run once more\n"
     "afterwards. At the end of the input everything is finished.\n"
     "\n"
     "In COMMAND and ARG {} is the key, {.} the key without its extension, {/} its base name, "
     "{//}\n"
     "its directory, {/.} the base name without its extension, {#} the attempt, {%} the worker.\n"
     "Without any of the first five the key is the last argument. No shell is involved. The\n"
     "environment has WQ_KEY, WQ_ATTEMPT, WQ_WORKER.\n"
     "\n"
     "Input\n"
     "  -0, --null                keys end with NUL instead of a line feed\n"
     "  -d, --delimiter=C         keys end with C\n"
     "  -a, --arg-file=FILE       read FILE; -: standard input, also with --socket\n"
     "      --max-queue=N         read no more while N keys wait or are in line (100000)\n"
     "      --socket=PATH         take keys and orders from other processes; see wq help add\n"
     "                            a NAME without a slash: $XDG_RUNTIME_DIR/wq/NAME\n"
     "      --socket-mode=MODE    0660, 0666: let a group or all users give keys (0600)\n"
     "      --socket-group=GROUP  the group of the socket; with 0660 if no mode is given\n"
     "\n"
     "Commands\n"
     "  -j, --jobs=N              commands at once (as many as there are CPUs)\n"
     "  -n, --max-args=N          give up to N keys to one command (1)\n"
     "      --timeout=TIME        terminate a command that runs for longer; that is a failure\n"
     "      --kill-after=TIME     kill it if that does not help (5s)\n"
     "      --command-wait=TIME   wait for a command that cannot be executed any more (30s)\n"
     "      --rate=N/s            start no more than that (also N/m, N/h)\n"
     "      --burst=N             but N at once after a lull (1)\n"
     "      --dry-run             print the commands, run none\n"
     "\n"
     "Failures: exit status 100 is for good; any other is tried again later\n"
     "      --retries=N           how often (3), or forever\n"
     "      --backoff=MIN..MAX    after MIN, twice that, ... up to MAX (1s..5m)\n"
     "      --jitter[=KIND]       scatter these times: full, equal, decorrelated or none (none)\n"
     "      --halt=WHEN           stop when keys failed for good: soon (running commands finish)\n"
     "                            or now (they are terminated), at the first, or as in\n"
     "                            soon,fail=3 or now,fail=10%; never (never)\n"
     "      --dead=FILE           append keys that failed for good\n"
     "\n"
     "Events\n"
     "      --debounce=TIME       run a key once it has not been given for TIME\n"
     "      --max-wait=TIME       but wait no longer than that in all\n"
     "\n"
     "Output: what a command writes is shown as a whole when it has ended\n"
     "  -k, --keep-order          show outputs in the order in which keys were given\n"
     "      --tag                 each line begins with the key and a tab\n"
     "      --line-buffer         show each line at once\n"
     "      --results=DIR         put it into DIR/KEY/stdout and stderr instead\n"
     "      --log=FILE            append a JSON object for each attempt\n"
     "      --summary             say at the end what became of all keys\n"
     "      --no-progress         no line of progress on a terminal\n"
     "  -q, --quiet               say nothing but errors\n"
     "  -v, --verbose             say why attempts failed\n"
     "\n"
     "Looking at it\n"
     "      --http=ADDR           serve metrics and a page on a PORT or ADDRESS:PORT\n"
     "      --metrics-file=FILE   write metrics at the end\n"
     "      --name=NAME           of the queue, in both (wq)\n"
     "\n"
     "Stopping: TERM or INT once, running commands finish; twice, they are terminated\n"
     "      --on-term=drain       once: finish all keys that were taken (finish)\n"
     "      --grace=TIME          twice: kill after TIME (10s)\n"
     "      --leftover=FILE       write keys that were not done, with their times and failures\n"
     "  QUIT: kill them now; USR1, USR2: one worker more, one fewer\n"
     "\n"
     "Exit status: 0; 123 a key failed for good; 75 stopped with work left; 126, 127 the command\n"
     "cannot be executed, is not there; 2 usage; 1 anything else.\n"
     "\n"
     "  inotifywait -mr -e close_write --format '%w%f' in/ | wq run -j4 --debounce 100ms -- "
     "./convert {}\n"},
#define AT                                                                                         \
	"\nThe run is the one that listens on --socket=PATH or NAME (-s PATH), on $WQ_SOCKET, or " \
	"on\n"                                                                                     \
	"the name wq.\n"                                                                           \
	"  --timeout=TIME   give up after TIME, 0: never; without it, if the run does not "        \
	"answer\n"                                                                                 \
	"                   for 10s: exit status 75\n"
    {"add", "usage: wq add [--socket=PATH] [--after=TIME] [--wait] KEY...|-\n\n"
            "Gives keys to a run, and waits while it is full. Any process can do\n"
            "that: each line that is written to the socket is a key, `echo KEY | nc -NU PATH`.\n"
            "  -              those on standard input, a line each\n"
            "  -0, --null     that end with NUL\n"
            "  --after=TIME   not before TIME has passed\n"
            "  --wait         wait until they are over: exit status 0 all are done, 123 one\n"
            "                 failed for good, 125 one was cancelled, 75 the run ended before\n"
            "  -v, --verbose  say how many there were, and how many merged\n"
            "  --             before a key that begins with a dash, or is one\n"
            "Exit status 1: a key was not taken; if it was one of many, the first is named.\n" AT},
    {"status", "usage: wq status [--socket=PATH] [--json]\n\n"
               "Says what a run does. --json: as one JSON object.\n" AT},
    {"top", "usage: wq top [--socket=PATH] [--interval=TIME]\n\n"
            "Shows a run live: q ends it, p pauses the run or resumes it. What is no terminal\n"
            "gets one picture.\n"
            "  --interval=TIME   a new picture each TIME (1s)\n" AT},
    {"ls", "usage: wq ls [--socket=PATH] [--state=S] [--limit=N] [--json | -0]\n\n"
           "Lists keys: state, for how long or until when, failures (+: it comes once more), key.\n"
           "  --state=S   queued, running or waiting; dead: those that failed for good recently\n"
           "  --limit=N   no more than N keys (1000); 0: all\n"
           "  --json      a JSON object for each\n"
           "  -0, --null  keys alone, as they are, each with a NUL\n" AT},
    {"retry", "usage: wq retry [--socket=PATH] KEY...\n\n"
              "Keys that wait are tried now; keys that failed for good recently are queued again.\n"
              "Exit status 1: one does neither.\n" AT},
    {"cancel", "usage: wq cancel [--socket=PATH] [--kill] KEY...\n\n"
               "Cancels keys. A command that runs goes on, but its key does not come again.\n"
               "Exit status 1: one is not there.\n"
               "  --kill   terminate the command, too\n" AT},
    {"forget", "usage: wq forget [--socket=PATH] KEY...\n\n"
               "Forgets how often keys have failed, and that they failed for good.\n" AT},
    {"pause", "usage: wq pause [--socket=PATH]\n\nNo command is started until wq resume.\n" AT},
    {"resume", "usage: wq resume [--socket=PATH]\n\nCommands are started again.\n" AT},
    {"set",
     "usage: wq set [--socket=PATH] workers=N | rate=N/s | rate=none | burst=N ...\n\n"
     "Changes a run: all of it, or nothing if something is wrong. Commands that run finish.\n" AT},
    {"wait",
     "usage: wq wait [--socket=PATH] [KEY...]\n\n"
     "Waits until none of these keys is there any more, or none at all. Exit status 123: one\n"
     "failed for good, meanwhile or recently; 75: timed out, or the run ended before.\n" AT},
    {"drain",
     "usage: wq drain [--socket=PATH] [--no-wait]\n\n"
     "The run takes no more keys, finishes those that it has, and ends. Keys that wait run\n"
     "when they are due. Exit status 0, even if keys failed for good.\n"
     "  --no-wait   return at once; do not wait for the end\n" AT},
    {"stop",
     "usage: wq stop [--socket=PATH] [--no-wait]\n\n"
     "The run ends as by SIGTERM: running commands finish. Exit status 0, even if keys are\n"
     "left.\n"
     "  --no-wait   return at once; do not wait for the end\n" AT},
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
	if (!command) {
		return print(overview);
	}
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		if (strcmp(command, texts[i].command) == 0) {
			return print(texts[i].text);
		}
	}
	return usage(NULL, "%s: unknown command", shown(command, strlen(command)));
}
