/*
 * Where a run's socket is. What has a slash is a path. What has none is a name, and stands for
 * $XDG_RUNTIME_DIR/wq/NAME; without that variable for /run/user/UID/wq/NAME, if that folder is
 * ours.
 */
#ifndef CLI_SOCKET_PLACE_H
#define CLI_SOCKET_PLACE_H

#include <stdbool.h>

#include "cli/base/text.h"

/* What clients ask if nothing is named. */
#define PLACE_DEFAULT "wq"

bool place_is_name(const char *given);
/* Puts the path there, with a NUL. False, after a message: it is no name, or there is no folder. */
bool place_path(const char *given, struct text *path);
/* Is there a folder for names? Says nothing. */
bool place_exists(void);
/* Makes the folder of a name's path, for its user alone. False, after a message. */
bool place_make(const char *path);

#endif
