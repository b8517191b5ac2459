#include "run/mocks.h"

#include "base/fs.h"
#include "base/mem.h"

void mocks_put_first(struct str_list *env, const char *dir)
{
    static const char name[] = "PATH=";

    for (size_t i = 0; i < env->count; i++) {
        if (!str_starts(env->items[i], name))
            continue;
        char *longer = str_format("PATH=%s:%s", dir, env->items[i] + strlen(name));

        free(env->items[i]);
        env->items[i] = longer;
    }
}

void mocks_on_path(const struct task_public *task, struct str_list *env)
{
    for (size_t i = task->mock_dirs.count; i-- > 0;) {
        scoped(mem_freep) char *path = path_join("/workspace", task->mock_dirs.items[i]);
        scoped(mem_freep) char *normal = path_normal(path);

        mocks_put_first(env, normal);
    }
}
