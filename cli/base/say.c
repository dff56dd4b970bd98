/* Messages. */
#include "cli/base/say.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/base/text.h"

enum { MESSAGE_MAX = 2048, SHOWN_MAX = 200 };

void (*say_to)(const char *line, size_t n);

static void put(const char *format, va_list args)
{
	char line[MESSAGE_MAX] = "wq: ";
	size_t n = strlen(line);
	int m = vsnprintf(line + n, sizeof line - n - 1, format, args);

	n += m < 0 ? 0 : (size_t)m < sizeof line - n - 1 ? (size_t)m : sizeof line - n - 2;
	line[n++] = '\n';
	if (say_to)
		say_to(line, n);
	else if (write(STDERR_FILENO, line, n) < 0)
		return; /* there is nobody to tell */
}

void say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	put(format, args);
	va_end(args);
}

int usage(const char *command, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	put(format, args);
	va_end(args);
	if (command)
		say("see 'wq help %s'", command);
	else
		say("see 'wq help'");
	return EXIT_USAGE;
}

const char *shown(const void *key, size_t len)
{
	static struct text text[2];
	static int turn;
	struct text *t = &text[turn ^= 1];

	t->n = 0;
	text_visible(t, key, len, SHOWN_MAX);
	text_add(t, "", 1);
	return t->bytes;
}
