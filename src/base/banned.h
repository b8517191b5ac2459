#pragma once
/*
 * banned: functions that no file may call. The compiler stops at the name.
 *
 * System headers that mention a name must come before the poison, so they are included here. A
 * header of a library that mentions one and fails to compile belongs into this list, too.
 */

#include <alloca.h>
#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

/* glibc has some of them as macros, depending on the compiler and the level of fortification. */
#undef alloca
#undef sprintf
#undef vsprintf

#pragma GCC poison strcpy strcat strncpy strncat sprintf vsprintf gets strtok atoi atol
#pragma GCC poison alloca system popen tmpnam mktemp localtime gmtime readdir_r

/*
 * signal() differs from system to system: sigaction() is the one to use. It is refused where it is
 * called, not where it is named, as it is a good name for a member.
 */
#define signal(number, handler)                                                                    \
    __extension__({ _Static_assert(0, "signal() is banned, use sigaction()"); })
