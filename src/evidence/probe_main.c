/*
 * closedbook-probe: the attack battery and its stand-ins, one static program that runs in any root.
 *
 *   attack | fast       the attacks of the agent's phase; reads targets from descriptor 4, writes
 *                       result lines on 3; 5 and up are the lifelines
 *   grade               those of the grading phase, likewise
 *   candidate           those of a candidate's cell; reads targets from 0, writes result lines on 1
 *   host | cell | peer  a stand-in: reads the secret from descriptor 4, writes lines on 3
 *   list                what attacks there are, on standard output
 *
 * Started by closedbook, see run/probe.h.
 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>

#include "evidence/attack_run.h"
#include "evidence/stand.h"

#define LINES_FD 3
#define INPUT_FD 4
#define LIFELINE_FD 5
#define INPUT_BYTES 16384
#define EXIT_MISUSED 2

static bool read_input(int fd, char ret[static INPUT_BYTES])
{
    ssize_t n = pread(fd, ret, INPUT_BYTES - 1, 0);

    if (n <= 0)
        return false;
    ret[n] = '\0';
    return true;
}

static int run_attacks(const char *mode)
{
    static char text[INPUT_BYTES];
    static struct targets targets;
    bool grade = strcmp(mode, "grade") == 0, candidate = strcmp(mode, "candidate") == 0;
    int input = candidate ? STDIN_FILENO : INPUT_FD;
    struct sigaction ignored = {.sa_handler = SIG_IGN};

    if (!read_input(input, text) || !targets_parse(text, &targets))
        return EXIT_MISUSED;
    (void)sigaction(SIGPIPE, &ignored, NULL);
    (void)close(input);
    struct attack_run run = {
        .targets = &targets,
        .phase = candidate ? PHASE_CANDIDATE
                 : grade   ? PHASE_GRADE
                           : PHASE_AGENT,
        .fast = strcmp(mode, "fast") == 0,
        .lines_fd = candidate ? STDOUT_FILENO : LINES_FD,
    };

    for (int i = 0; i < LIFELINES; i++)
        run.lifelines[i] =
            !candidate && fcntl(LIFELINE_FD + i, F_GETFD) >= 0 ? LIFELINE_FD + i : -1;
    return attack_run_all(&run) > 0 ? 0 : 1;
}

static int be_stand_in(enum stand_place place)
{
    static char secret[INPUT_BYTES];

    if (!read_input(INPUT_FD, secret))
        return EXIT_MISUSED;
    stand(place, secret, LINES_FD);
    return 0;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";

    if (strcmp(mode, "list") == 0) {
        attack_list(STDOUT_FILENO);
        return 0;
    }
    if (strcmp(mode, "attack") == 0 || strcmp(mode, "fast") == 0 || strcmp(mode, "grade") == 0 ||
        strcmp(mode, "candidate") == 0)
        return run_attacks(mode);
    if (strcmp(mode, "host") == 0)
        return be_stand_in(STAND_HOST);
    if (strcmp(mode, "cell") == 0)
        return be_stand_in(STAND_CELL);
    if (strcmp(mode, "peer") == 0)
        return be_stand_in(STAND_GRADE);
    (void)fputs("closedbook-probe: started by closedbook, not by hand\n", stderr);
    return EXIT_MISUSED;
}
