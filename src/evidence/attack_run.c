#include "evidence/attack_run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>

#include "base/clock.h"

#define ATTACK_MS 6000
#define ATTACK_FAST_MS 500
#define GRACE_MS 500
#define LINE_BYTES 640
#define NS_IN_MS UINT64_C(1000000)

static const struct attack_table *const tables[] = {
    &attacks_material, &attacks_copies,  &attacks_process, &attacks_permission, &attacks_escape,
    &attacks_network,  &attacks_cells,   &attacks_names,   &attacks_collect,    &attacks_host,
    &attacks_grader,   &attacks_verdict, &attacks_persist, &attacks_candidate,  &attacks_limits,
};

static const char *const phase_names[] = {
    [PHASE_AGENT] = "agent", [PHASE_GRADE] = "grade", [PHASE_CANDIDATE] = "candidate"};

/* One write, so that a line is whole. */
static void write_line(int fd, const char *line, int length)
{
    if (length > 0 && length < LINE_BYTES)
        (void)!write(fd, line, (size_t)length); /* a reader that is gone needs no line */
}

static void print_result(const struct attack_run *run, const struct attack *attack,
                         const struct attack_result *result, uint64_t ms)
{
    char line[LINE_BYTES], detail[ATTACK_DETAIL_BYTES];
    size_t i = 0;

    for (; i < sizeof(detail) - 1 && result->detail[i] != '\0'; i++) {
        detail[i] = '?';
        if (result->detail[i] >= ' ' && result->detail[i] < 0x7f)
            detail[i] = result->detail[i];
    }
    detail[i] = '\0';
    write_line(run->lines_fd, line,
               snprintf(line, sizeof(line), "%s\t%c\t%s\t%ju\t%ju\t%s\n", attack->id, attack->class,
                        attack_verdict_name(result->verdict), (uintmax_t)result->examined,
                        (uintmax_t)ms, detail));
}

_Noreturn static void be_attack(const struct attack_run *run, const struct attack *attack, int fd)
{
    struct attack_context context = {
        .targets = run->targets,
        .fast = run->fast,
        .deadline_ns = clock_ns() + (run->fast ? ATTACK_FAST_MS : ATTACK_MS) * NS_IN_MS,
        .result = {.verdict = ATTACK_DENIED},
    };

    memcpy(context.lifelines, run->lifelines, sizeof(context.lifelines));
    attack->run(&context);
    if (context.result.examined == 0 && context.result.verdict != ATTACK_FOUND) {
        context.result.verdict = ATTACK_ERROR;
        (void)snprintf(context.result.detail, sizeof(context.result.detail), "examined nothing");
    }
    _exit(write(fd, &context.result, sizeof(context.result)) == sizeof(context.result) ? 0 : 1);
}

/* The child's word, or an error in its place. */
static void await(const struct attack_run *run, pid_t pid, int fd, struct attack_result *ret)
{
    struct pollfd watched = {.fd = fd, .events = POLLIN};
    int status, patience = (run->fast ? ATTACK_FAST_MS : ATTACK_MS) + GRACE_MS;

    *ret = (struct attack_result){.verdict = ATTACK_ERROR};
    int r = poll(&watched, 1, patience);

    if (r == 0) {
        (void)snprintf(ret->detail, sizeof(ret->detail), "did not end in %d ms", patience);
        (void)kill(pid, SIGKILL);
    } else if (r < 0 || read(fd, ret, sizeof(*ret)) != sizeof(*ret)) {
        ret->verdict = ATTACK_ERROR;
        (void)snprintf(ret->detail, sizeof(ret->detail), "it died");
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    ret->detail[sizeof(ret->detail) - 1] = '\0';
}

static void run_one(const struct attack_run *run, const struct attack *attack)
{
    struct attack_result result = {.verdict = ATTACK_ERROR, .detail = "no process for it"};
    uint64_t began = clock_ns();
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) == 0) {
        pid_t pid = fork();

        if (pid == 0) {
            (void)close(ends[0]); /* the reader's */
            be_attack(run, attack, ends[1]);
        }
        (void)close(ends[1]); /* the child's */
        if (pid > 0)
            await(run, pid, ends[0], &result);
        (void)close(ends[0]); /* read only */
    }
    print_result(run, attack, &result, (clock_ns() - began) / NS_IN_MS);
}

size_t attack_run_all(const struct attack_run *run)
{
    size_t count = 0;

    for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
        for (size_t k = 0; k < tables[i]->count; k++) {
            const struct attack *attack = &tables[i]->attacks[k];

            if (attack->phase != run->phase || (run->fast && !attack->fast))
                continue;
            run_one(run, attack);
            count++;
        }
    }
    return count;
}

void attack_list(int lines_fd)
{
    for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
        for (size_t k = 0; k < tables[i]->count; k++) {
            const struct attack *attack = &tables[i]->attacks[k];
            char line[LINE_BYTES];

            write_line(lines_fd, line,
                       snprintf(line, sizeof(line), "%s\t%c\t%s\t%s\t%s\t%s\n", attack->id,
                                attack->class,
                                attack->control == CONTROL_LEAKY ? "leaky" : "mutant",
                                phase_names[attack->phase], attack->fast ? "fast" : "whole",
                                attack->title));
        }
    }
}
