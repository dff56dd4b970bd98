// The same in C++.
#include "consumer.c"
