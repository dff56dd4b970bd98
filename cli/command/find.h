/* Where a command is. */
#ifndef CLI_COMMAND_FIND_H
#define CLI_COMMAND_FIND_H

#include "cli/base/text.h"

/* Can this file be executed, as far as one sees? 0, or EXIT_NOT_FOUND, EXIT_NOT_EXEC and errno. */
int find_judge(const char *path);
/* The file that `name` means, with its NUL; without a slash it is looked for in $PATH. As above. */
int find(const char *name, struct text *path);

#endif
