/* Any text: what is migrated reads as YAML, and migrating it again changes nothing. */
#include "base/mem.h"
#include "lint/migrate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    scoped(migration_done) struct migration once = {0}, twice = {0};
    scoped(mem_freep) char *copy = mem_new(size + 1, 1);
    struct task_text text = {"fuzz", copy, size};

    if (size > 0)
        memcpy(copy, data, size);
    if (migrate_text(&text, "reference", &once, NULL) < 0 || once.refused.count > 0)
        return 0;
    ASSERT((once.changes.count == 0) ==
           (once.text.size_bytes == size && memcmp(buf_text(&once.text), copy, size) == 0));

    struct task_text again = {"fuzz", buf_text(&once.text), once.text.size_bytes};

    ASSERT(migrate_text(&again, "reference", &twice, NULL) == 0);
    ASSERT(twice.changes.count == 0 && twice.refused.count == 0);
    return 0;
}
