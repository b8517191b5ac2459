#include "base/libraries.h"

#include <jansson.h>
#include <openssl/crypto.h>
#include <utf8proc.h>

const char *library_jansson_version(void)
{
    return jansson_version_str();
}

const char *library_openssl_version(void)
{
    return OpenSSL_version(OPENSSL_VERSION_STRING);
}

const char *library_utf8proc_version(void)
{
    return utf8proc_version();
}
