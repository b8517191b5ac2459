#pragma once
/*
 * libraries: the versions of the libraries that base/ is linked with.
 */

#include "base/base.h"

const char *library_jansson_version(void);
const char *library_openssl_version(void);
const char *library_utf8proc_version(void);
