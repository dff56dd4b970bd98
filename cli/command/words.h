/*
 * What is replaced in the words of a command:
 *
 *   in a word | becomes
 *   ----------+-------------------------------------------------------
 *   {}        | the key; if no word has it or a part of it, it is the last argument
 *   {.}       | the key without its extension
 *   {/}       | its base name: what follows the last slash
 *   {//}      | its directory, as dirname(1) has it
 *   {/.}      | the base name without its extension
 *   {value}   | the value that came with the key; nothing if there is none
 *   {#}       | the attempt, from 1
 *   {%}       | the worker, from 1
 *
 * Parts of a key are what GNU parallel takes them for. A word that has the key, a part of it, or
 * its value, is repeated for each key of the job.
 */
#ifndef CLI_COMMAND_WORDS_H
#define CLI_COMMAND_WORDS_H

#include "cli/base/text.h"
#include "cli/command/job.h"

/* Is anything in it replaced? */
bool words_vary(const char *word);
/* Does one of them, up to NULL, have the key or a part of it? */
bool words_have_key(char *const *words);
/* All words as they are executed, each with a NUL; how many. */
size_t words_expand(struct text *t, char *const *words, const struct job *j);

#endif
