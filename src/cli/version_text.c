#include "cli/version_text.h"

#include "base/libraries.h"
#include "cli/version.h"
#include "grade/regex.h"
#include "task/yaml.h"

/* A library is included by one module only, which tells its version. */
static const struct {
    const char *name;
    const char *(*version)(void);
} libraries[] = {
    {"jansson", library_jansson_version},
    {"OpenSSL", library_openssl_version},
    {"utf8proc", library_utf8proc_version},
    {"libyaml", yaml_library_version},
};

void version_text(struct buf *buf)
{
    buf_format(buf, "closedbook %s\ncommit %s\n", CLOSEDBOOK_VERSION, CLOSEDBOOK_COMMIT);
    for (size_t i = 0; i < ARRAY_SIZE(libraries); i++)
        buf_format(buf, "%s %s\n", libraries[i].name, libraries[i].version());
    buf_text_append(buf, "PCRE2 ");
    regex_library_version(buf);
    buf_char(buf, '\n');
}
