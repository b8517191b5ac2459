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

#undef alloca

#pragma GCC poison strcpy strcat strncpy strncat sprintf vsprintf gets strtok atoi atol
#pragma GCC poison alloca system popen tmpnam mktemp localtime gmtime readdir_r

/*
 * signal() is refused where it is called, not where it is named: it is a good name for a member.
 * Use sigaction().
 */
extern __sighandler_t signal(int number, __sighandler_t handler) __attribute__((
    __error__("signal() is banned: its semantics differ from system to system; use sigaction()")));
