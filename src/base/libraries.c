#include "base/libraries.h"

#include <jansson.h>
#include <openssl/opensslv.h>
#include <utf8proc.h>

const char *library_jansson_version(void)
{
    return jansson_version_str();
}

/* Of the build: OpenSSL_version() would link all of the static libcrypto, not only a digest. */
const char *library_openssl_version(void)
{
    return OPENSSL_VERSION_STR;
}

const char *library_utf8proc_version(void)
{
    return utf8proc_version();
}
