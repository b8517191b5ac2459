/*
 * Runs a fuzz target over files and folders of inputs, as a plain test: what libFuzzer's main()
 * does with -runs=0, for builds without it. The empty input always comes first.
 */
#include <fcntl.h>

#include "base/fs.h"
#include "base/mem.h"

#define INPUT_BYTES_MAX ((size_t)1 << 24)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int run_file(void *context, int dir_fd, const char *name, struct error **err)
{
    scoped(buf_done) struct buf input = {0};
    size_t *count = context;
    int r = fs_read_file(dir_fd, name, INPUT_BYTES_MAX, &input, err);

    if (r < 0)
        return r;
    /* An exact copy, so that a read past the end is one past the allocation. */
    scoped(mem_freep) uint8_t *exact = mem_dup(buf_text(&input), input.size_bytes);

    (void)LLVMFuzzerTestOneInput(exact, input.size_bytes); /* always 0 */
    (*count)++;
    return 0;
}

static int run_path(const char *path, size_t *count, struct error **err)
{
    scoped(fd_closep) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return fd >= 0 ? fs_each(fd, run_file, count, err) : run_file(count, AT_FDCWD, path, err);
}

int main(int argc, char **argv)
{
    scoped(error_freep) struct error *err = NULL;
    size_t count = 1;

    (void)LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
    for (int i = 1; i < argc; i++) {
        if (run_path(argv[i], &count, &err) < 0) {
            (void)fprintf(stderr, "%s\n", error_message(err));
            return 1;
        }
    }
    (void)printf("%zu inputs\n", count); /* the exit status is what counts */
    return 0;
}
