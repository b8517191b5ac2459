#pragma once
/*
 * banned: functions that no file may call. The compiler stops at the name.
 *
 * System headers that mention a name must come before the poison, so they are included here.
 */

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#pragma GCC poison strcpy strcat strncpy strncat sprintf vsprintf gets strtok atoi atol
#pragma GCC poison system popen tmpnam mktemp localtime gmtime readdir_r
