/*
 * Requests as a hostile client might send them. Whatever is taken must hold what the server builds
 * on: terminated absolute targets without "..", descriptors that were sent, sizes within the blob.
 */

#include <fcntl.h>

#include "base/fs.h"
#include "cell/request.h"

#define FUZZ_FDS 4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int fds[FUZZ_FDS];

static void open_fds(void)
{
    static const char zeros[4096];

    if (fds[0] != 0)
        return;
    fds[0] = open("/usr", O_PATH | O_DIRECTORY | O_CLOEXEC);
    fds[1] = open("/usr/bin/env", O_PATH | O_CLOEXEC);
    fds[2] = open("/dev/null", O_PATH | O_CLOEXEC);
    ASSERT(fs_memfd("blob", zeros, sizeof(zeros), &fds[3], NULL) == 0);
}

static void check_target(const char *target, size_t size)
{
    ASSERT(memchr(target, '\0', size) != NULL);
    ASSERT(target[0] == '/' && target[1] != '\0');
    ASSERT(strstr(target, "/../") == NULL && strstr(target, "//") == NULL);
}

static void check_start(const struct request_start *request)
{
    if (request_check_start(request, fds, FUZZ_FDS) != 0)
        return;
    ASSERT(request->mount_count <= CELL_MOUNTS_MAX && request->text_count <= CELL_TEXTS_MAX);
    ASSERT(request->blob_fd == 3);
    for (uint32_t i = 0; i < request->mount_count; i++) {
        check_target(request->mounts[i].target, CELL_PATH_BYTES);
        ASSERT(request->mounts[i].fd >= 0 && request->mounts[i].fd < FUZZ_FDS);
    }
    for (uint32_t i = 0; i < request->text_count; i++) {
        check_target(request->texts[i].target, CELL_PATH_BYTES);
        ASSERT(request->texts[i].offset + request->texts[i].size_bytes <= 4096);
    }
    ASSERT(request->command.strings_bytes <= 4096);
}

static void check_candidate(const struct request_exec *request)
{
    if (request_check_candidate(request, fds, FUZZ_FDS) != 0)
        return;
    ASSERT(request->command.argc > 0 && request->command.strings_bytes <= 4096);
    ASSERT(request->command.fd_count <= 3 && request->blob_fd == 3);
    for (uint32_t i = 0; i < request->command.fd_count; i++)
        ASSERT(request->command.fds[i] == -1 || request->command.fds[i] == 3); /* no mere paths */
    ASSERT(request->command.cwd[0] == '\0' ||
           strncmp(request->command.cwd, "/workspace", strlen("/workspace")) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    union request request = {0};

    open_fds();
    memcpy(&request, data, size_min(size, sizeof(request)));
    check_start(&request.start);
    check_candidate(&request.exec);
    (void)!request_check_recipe(&request.start, fds, FUZZ_FDS); /* as with the last one */
    (void)!request_check_exec(&request.exec, fds, FUZZ_FDS);    /* only that it does not crash */
    return 0;
}
