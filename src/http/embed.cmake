# Writes the bytes of a file as a C source.
#
#     cmake -DFROM=page.html -DTO=page.c -P embed.cmake
file(READ "${FROM}" bytes HEX)
string(LENGTH "${bytes}" digits)
math(EXPR length "${digits} / 2")
string(REGEX REPLACE "(................................)" "\\1\n\t" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
get_filename_component(name "${FROM}" NAME)
file(WRITE "${TO}" "/* Made from ${name}. */
#include \"http/page.h\"

const unsigned char wq__http_page[] = {
	${bytes}0};
const size_t wq__http_page_len = ${length};
")
