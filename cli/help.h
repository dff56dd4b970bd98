/* `wq help [COMMAND]`. */
#ifndef CLI_HELP_H
#define CLI_HELP_H

/* On standard output; NULL: which commands there are. 0, or an exit status: no such command. */
int help(const char *command);

#endif
