/* A normal path is normal again, and one that is inside stays inside. Numbers come along. */
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_path(const char *text)
{
    scoped(mem_freep) char *normal = path_normal(text);
    scoped(mem_freep) char *twice = path_normal(normal);
    scoped(mem_freep) char *dir = path_dir(text);
    scoped(mem_freep) char *joined = path_join("base", text);

    ASSERT(strcmp(normal, twice) == 0);
    ASSERT((text[0] == '/') == (normal[0] == '/'));
    ASSERT(strstr(normal, "//") == NULL && strstr(normal, "/./") == NULL);
    if (path_is_inside(text))
        ASSERT(path_is_inside(normal) && joined[0] == 'b');
    ASSERT(dir[0] != '\0');
}

static void check_number(const char *text)
{
    uint64_t number = 0;
    int64_t signed_number = 0;
    double real = 0;

    if (str_to_u64(text, &number)) {
        scoped(mem_freep) char *back = str_format("%llu", (unsigned long long)number);

        ASSERT(str_ends(text, back) && str_to_double(text, &real));
    }
    if (str_to_i64(text, &signed_number))
        ASSERT(str_to_double(text, &real) && (signed_number < 0) == (real < 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"driver", "network", "timeout", "a", ""};
    scoped(mem_freep) char *text = str_ndup(size == 0 ? "" : (const char *)data, size);
    const char *nearest = str_nearest(text, names, ARRAY_SIZE(names));

    ASSERT(nearest == NULL || nearest[0] != '\0');
    check_path(text);
    check_number(text);
    return 0;
}
