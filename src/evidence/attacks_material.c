/* Class A: grading material in the agent's view. */

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/str.h"
#include "evidence/attack.h"

#define WALK_ENTRIES 60000
#define WALK_FAST_ENTRIES 4000
#define NAMES_ENTRIES 400000

extern char **environ;

/* The likely places first: on a machine without a cell the rest is endless. */
static const char *const roots[] = {".",        "../..", "..",   "/workspace", "/tmp",  "/home",
                                    "/var/tmp", "/run",  "/etc", "/dev/shm",   "/root", "/srv",
                                    "/opt",     "/mnt",  "/var", "/",          "/..",   NULL};
static const char *const usr[] = {"/usr", "/bin", "/lib", "/lib64", "/sbin", NULL};

static void walk_contents(struct attack_context *context)
{
    walk_for_secret(context, &(struct walk){
                                 .roots = roots,
                                 .skip = usr,
                                 .entries_max = context->fast ? WALK_FAST_ENTRIES : WALK_ENTRIES,
                                 .contents = true,
                             });
}

static void walk_names(struct attack_context *context)
{
    walk_for_secret(context, &(struct walk){
                                 .roots = roots,
                                 .skip = context->fast ? usr : NULL,
                                 .entries_max = context->fast ? WALK_FAST_ENTRIES : NAMES_ENTRIES,
                                 .names = true,
                             });
}

static bool is_known_place(const char *path)
{
    static const char *const known[] = {"/usr", "/bin",        "/sbin", "/workspace",
                                        "/tmp", "/home/agent", "/dev",  "/lib"};

    for (size_t i = 0; i < ARRAY_SIZE(known); i++)
        if (str_starts(path, known[i]))
            return true;
    return false;
}

/* What a variable names, and whether there is anything. */
static void follow(struct attack_context *context, const char *variable, const char *value)
{
    static const char *const telling[] = {"TASK_", "REFERENCE", "SUITE_", "CLOSEDBOOK",
                                          "XDG_",  "ANSWER",    "GRADE",  "SECRET"};
    struct stat status;

    for (size_t i = 0; i < ARRAY_SIZE(telling); i++)
        if (str_starts(variable, telling[i]))
            attack_found(context, "the variable %.60s", variable);
    if (value[0] == '/' && !is_known_place(value) && stat(value, &status) == 0)
        attack_found(context, "a variable leads to %.100s", value);
}

static void read_environment(struct attack_context *context)
{
    for (char **variable = environ; *variable != NULL; variable++) {
        const char *value = strchr(*variable, '=');

        attack_looked(context, 1);
        if (secret_in(context->targets, *variable, strlen(*variable)))
            attack_found(context, "in the environment");
        if (value != NULL)
            follow(context, *variable, value + 1);
    }
}

/* What the operator installed or unpacked beside the system. */
static void look_beside_system(struct attack_context *context)
{
    static const char *const places[] = {"/usr/local", "/usr/src", "/opt",
                                         "/srv",       "/mnt",     "/media"};

    bool is_root = targets_say_root(context->targets);

    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        DIR *dir = opendir(places[i]);
        /* Who may install programs has a place for them. */
        int entries = is_root && strcmp(places[i], "/usr/local") == 0 ? -1 : 0;

        attack_looked(context, 1);
        while (dir != NULL && readdir(dir) != NULL)
            entries++;
        if (entries > 2)
            attack_found(context, "%s has %d entries", places[i], entries - 2);
        if (dir != NULL)
            (void)closedir(dir); /* read only */
    }
}

static const struct attack attacks[] = {
    {"material.contents", 'A', PHASE_AGENT, CONTROL_LEAKY, true,
     "read every file that can be reached", walk_contents},
    {"material.names", 'A', PHASE_AGENT, CONTROL_LEAKY, false,
     "look for names of the private half in every directory", walk_names},
    {"material.signposts", 'A', PHASE_AGENT, CONTROL_LEAKY, true,
     "follow what the environment names", read_environment},
    {"material.beside", 'A', PHASE_AGENT, CONTROL_LEAKY, true,
     "look at what was installed beside the system", look_beside_system},
};
const struct attack_table attacks_material = {attacks, ARRAY_SIZE(attacks)};
