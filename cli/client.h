/* The commands that talk to a `wq run --socket`: all but run and help. */
#ifndef CLI_CLIENT_H
#define CLI_CLIENT_H

/* argv[0] is the command's name. The program's exit status. */
int client_main(int argc, char **argv);

#endif
