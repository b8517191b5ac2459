/* The tables of the sandbox block. */
#include "task/schema.h"

#define SECONDS_MAX (7.0 * 24 * 3600)
#define LATER_LIST(field_name, text)                                                               \
    {                                                                                              \
        .name = (field_name), .types = TYPE_LIST, .items = TYPE_TEXT, .state = FIELD_LATER,        \
        .doc = (text)                                                                              \
    }

static const struct field limits_fields[] = {
    {.name = "timeout",
     .types = TYPE_REAL,
     .flags = FIELD_RANGE | FIELD_ABOVE_MIN,
     .min = 0,
     .max = SECONDS_MAX,
     .standard = "300",
     .doc = "seconds for a command of a grader; a criterion's own larger timeout wins"},
    {.name = "max_memory_mb",
     .types = TYPE_INT,
     .flags = FIELD_RANGE,
     .min = 1,
     .max = 1e9,
     .doc = "memory of all programs together; what the workspace and the other places hold is not "
            "in it; default none"},
    {.name = "max_cpus",
     .types = TYPE_REAL,
     .flags = FIELD_RANGE,
     .min = 0.01,
     .max = 1e5,
     .doc = "processors, also parts of one; default all"},
    {.name = "max_pids",
     .types = TYPE_INT,
     .flags = FIELD_RANGE,
     .min = 1,
     .max = 1e6,
     .standard = "1024",
     .doc = "processes and threads"},
    {.name = "max_disk_mb",
     .types = TYPE_INT,
     .flags = FIELD_RANGE,
     .min = 1,
     .max = 1e9,
     .standard = "2048",
     .doc = "what the workspace may hold"},
    {.name = "max_inodes",
     .types = TYPE_INT,
     .flags = FIELD_RANGE,
     .min = 16,
     .max = 1e9,
     .standard = "200000",
     .doc = "files that the workspace may hold"},
    {.name = "max_output_mb",
     .types = TYPE_INT,
     .flags = FIELD_RANGE,
     .min = 1,
     .max = 1e6,
     .standard = "16",
     .doc = "what is kept of stdout and stderr"},
    {.name = "best_effort",
     .types = TYPE_BOOL,
     .standard = "false",
     .doc = "a limit that cannot be enforced is recorded as such instead of an error"},
    {0},
};
const struct block limits_block = {
    .title = "sandbox.limits", .fields = limits_fields, .layered = true};

static const struct field template_dir_fields[] = {
    {.name = "path",
     .types = TYPE_TEXT,
     .flags = FIELD_REQUIRED | FIELD_NOT_EMPTY,
     .doc = "a folder, relative to the file; $VAR and ~ are expanded"},
    {.name = "mount_point",
     .types = TYPE_TEXT,
     .form = FORM_INSIDE,
     .standard = ".",
     .doc = "where in the workspace it goes"},
    {0},
};
static const struct block template_dir_block = {.title = "template_dir",
                                                .fields = template_dir_fields};

static const struct field starter_file_fields[] = {
    {.name = "path",
     .types = TYPE_TEXT,
     .flags = FIELD_REQUIRED,
     .form = FORM_INSIDE,
     .doc = "a path in the workspace"},
    {.name = "content", .types = TYPE_TEXT, .flags = FIELD_REQUIRED, .doc = "what it holds"},
    {0},
};
static const struct block starter_file_block = {.title = "starter file",
                                                .fields = starter_file_fields};
static const struct field starter_files_fields[] = {
    {.name = "files",
     .types = TYPE_LIST,
     .items = TYPE_BLOCK,
     .block = &starter_file_block,
     .flags = FIELD_REQUIRED | FIELD_NOT_EMPTY,
     .doc = "the files"},
    {0},
};
static const struct block starter_files_block = {.title = "starter_files",
                                                 .fields = starter_files_fields};

static const char *const history_choices[] = {"base", "ancestors", "none", NULL};
static const struct field repo_fields[] = {
    {.name = "url",
     .types = TYPE_TEXT,
     .flags = FIELD_REQUIRED | FIELD_NOT_EMPTY,
     .doc = "a git repository of this machine: a folder (bare or with .git), relative to the file; "
            "$VAR and ~ are expanded; or file:///PATH"},
    {.name = "commit",
     .types = TYPE_TEXT,
     .flags = FIELD_REQUIRED,
     .form = FORM_COMMIT,
     .doc = "the commit whose files the workspace holds; ignore_patterns are not applied to them"},
    {.name = "history",
     .types = TYPE_TEXT,
     .choices = history_choices,
     .standard = "base",
     .doc = "what .git holds, always made anew: base: one commit of those files; ancestors: the "
            "commit and all before it; none: there is no .git"},
    {0},
};
static const struct block repo_block = {.title = "repo", .fields = repo_fields};

static const struct field source_common[] = {
    {.name = "type", .types = TYPE_TEXT, .flags = FIELD_REQUIRED, .doc = "which kind"},
    {0},
};
static const struct kind source_kind_rows[] = {
    {.name = "template_dir", .block = &template_dir_block, .doc = "a folder is copied in"},
    {.name = "starter_files", .block = &starter_files_block, .doc = "files written in the task"},
    {.name = "repo",
     .block = &repo_block,
     .doc = "the files of one commit of a git repository; the first source, at most one"},
    {0},
};
const struct kinds source_kinds = {
    .title = "template source", .common = source_common, .kinds = source_kind_rows};

static const struct field packages_fields[] = {
    {.name = "env_packages",
     .types = TYPE_LIST,
     .items = TYPE_TEXT,
     .standard = "[]",
     .doc = "packages to install beside it, once for each distinct list, in a cell without a "
            "network: files (.whl, .tar.gz, .tgz) and folders, relative to the file; $VAR and ~ "
            "are expanded; names that a registry would have to serve are not in this version"},
    {0},
};
const struct block packages_block = {.title = "packages", .fields = packages_fields};

static const struct field service_fields[] = {
    {.name = "run",
     .types = TYPE_TEXT,
     .flags = FIELD_REQUIRED | FIELD_NOT_EMPTY,
     .doc =
         "for a shell, in the background: in the agent's cell as the agent, and in grading cells "
         "as the grader"},
    {.name = "ready",
     .types = TYPE_TEXT,
     .flags = FIELD_NOT_EMPTY,
     .doc = "for a shell, again and again until it succeeds; only then the agent or grader starts"},
    {.name = "timeout",
     .types = TYPE_REAL,
     .flags = FIELD_RANGE | FIELD_ABOVE_MIN,
     .min = 0,
     .max = 3600,
     .standard = "30",
     .doc = "seconds to wait for that; a service that is not ready by then makes the trial an "
            "ERROR"},
    {0},
};
static const struct block service_block = {.title = "service", .fields = service_fields};

static const struct field host_state_fields[] = {
    {.name = "from", .types = TYPE_TEXT, .flags = FIELD_REQUIRED, .doc = "a path on the host"},
    {.name = "to", .types = TYPE_TEXT, .flags = FIELD_REQUIRED, .doc = "the path in the cell"},
    LATER_LIST("include", "globs of what is copied"),
    {0},
};
static const struct block host_state_block = {.title = "host_state", .fields = host_state_fields};

static const struct field artifacts_fields[] = {
    LATER_LIST("include", "globs of what is kept"),
    LATER_LIST("exclude", "globs of what is not"),
    {.name = "max_mb", .types = TYPE_INT, .state = FIELD_LATER, .doc = "how much is kept"},
    {0},
};
static const struct block artifacts_block = {.title = "artifacts", .fields = artifacts_fields};

static const struct field build_fields[] = {
    {.name = "args", .types = TYPE_MAP, .state = FIELD_LATER, .doc = "build arguments"},
    {.name = "secrets", .types = TYPE_ANY, .state = FIELD_LATER, .doc = "build secrets"},
    {.name = "buildkit", .types = TYPE_BOOL, .state = FIELD_LATER, .doc = "whether to use it"},
    LATER_LIST("extra_args", "further arguments"),
    {0},
};
static const struct block build_block = {.title = "docker.build", .fields = build_fields};
static const struct field docker_fields[] = {
    {.name = "image", .types = TYPE_TEXT, .state = FIELD_LATER, .doc = "alias of sandbox.image"},
    {.name = "dockerfile_path", .types = TYPE_TEXT, .state = FIELD_LATER, .doc = "a Dockerfile"},
    {.name = "build",
     .types = TYPE_BLOCK,
     .block = &build_block,
     .state = FIELD_LATER,
     .doc = "how it is built"},
    {.name = "network",
     .types = TYPE_TEXT,
     .state = FIELD_LATER,
     .doc = "alias of sandbox.network"},
    LATER_LIST("egress_allowlist", "alias of sandbox.egress_allowlist"),
    {.name = "working_dir", .types = TYPE_TEXT, .state = FIELD_LATER, .doc = "a path, or auto"},
    LATER_LIST("env_passthrough", "alias of sandbox.env_passthrough"),
    LATER_LIST("env_passthrough_extra", "alias of sandbox.env_passthrough_extra"),
    LATER_LIST("extra_mounts", "host paths; a home directory loads as host_state"),
    {0},
};
const struct block docker_block = {.title = "sandbox.docker", .fields = docker_fields};

static const char *const driver_choices[] = {"native", "docker", "podman", "tempdir", NULL};
static const char *const tier_choices[] = {"A", "B", "B-", "C", NULL};
static const char *const mocks_choices[] = {"sealed", NULL};
static const char *const identity_choices[] = {"user", "root", NULL};
static const char *const network_choices[] = {"none", "broker", "allowlist", "open", NULL};
static const char *const deny_choices[] = {"deny", "allow", NULL};

static const struct field sandbox_fields[] = {
    {.name = "driver",
     .types = TYPE_TEXT,
     .choices = driver_choices,
     .standard = "native",
     .doc = "native, or tempdir (for development only: protects nothing and says so); docker and "
            "podman are not in this version"},
    {.name = "limits", .types = TYPE_BLOCK, .block = &limits_block, .doc = "what the cell may use"},
    {.name = "template_sources",
     .types = TYPE_LIST,
     .items = TYPE_UNION,
     .kinds = &source_kinds,
     .flags = FIELD_APPEND,
     .standard = "[]",
     .doc = "what the workspace holds at first; applied in order, the last one wins"},
    {.name = "ignore_patterns",
     .types = TYPE_LIST,
     .items = TYPE_TEXT,
     .standard = "[]",
     .doc = "names and globs that are not staged, beside the usual ones; !pattern takes one out"},
    {.name = "python",
     .types = TYPE_BLOCK,
     .block = &packages_block,
     .flags = FIELD_KEEPS_NULL,
     .doc = "python, python3 and pip of a virtual environment first on PATH, read-only, with the "
            "system's own packages and env_packages, in the agent's and the graders' cells; "
            "default: {} where the root has a python3; null: none"},
    {.name = "node",
     .types = TYPE_BLOCK,
     .block = &packages_block,
     .flags = FIELD_KEEPS_NULL,
     .doc = "{}: node and npm must be there; with env_packages as for python; default: none"},
    {.name = "require_tier",
     .types = TYPE_TEXT,
     .choices = tier_choices,
     .doc =
         "the weakest protection that will do (see SECURITY.md): a machine whose cells have less "
         "runs nothing; default: any but C, which --allow-tier C allows"},
    {.name = "identity",
     .types = TYPE_TEXT,
     .choices = identity_choices,
     .standard = "user",
     .doc = "root: the agent is root of its cell, over ids that own nothing on the host, and may "
            "install packages and write outside of the workspace; what it changes there is neither "
            "collected nor graded. Takes tier A and a cgroup that counts processes"},
    {.name = "services",
     .types = TYPE_LIST,
     .items = TYPE_BLOCK,
     .block = &service_block,
     .doc = "programs that run beside the agent and the grader, at most 8, started in this order"},
    {.name = "ptrace",
     .types = TYPE_TEXT,
     .choices = deny_choices,
     .state = FIELD_LATER,
     .idle = "allow",
     .doc = "deny: no debugger in the cell"},
    {.name = "abi32",
     .types = TYPE_BOOL,
     .state = FIELD_LATER,
     .idle = "false",
     .doc = "whether 32-bit programs may run"},
    {.name = "mock_path_dirs",
     .types = TYPE_LIST,
     .items = TYPE_TEXT,
     .form = FORM_INSIDE,
     .standard = "[]",
     .doc =
         "folders of the workspace that are first on the agent's PATH; the files that are staged "
         "right in them are made executable there"},
    {.name = "mocks",
     .types = TYPE_TEXT,
     .choices = mocks_choices,
     .doc = "sealed: the folders of mock_path_dirs are not in the agent's cell; their programs run "
            "in a cell of their own, with the agent's workspace read-only, and what they write in "
            "their folders is there when it is graded. What answers with recorded texts is "
            "record_cli, which is always sealed"},
    {.name = "record_cli",
     .types = TYPE_LIST,
     .items = TYPE_BLOCK,
     .block = &record_cli_block,
     .standard = "[]",
     .doc = "programs that are answered for from outside of the agent's cell, at most 64, first on "
            "its PATH; neither the answers nor the log of calls are in the cell, and graders find "
            "the log at cli_mocks/calls.jsonl"},
    {.name = "image",
     .types = TYPE_TEXT,
     .flags = FIELD_NOT_EMPTY,
     .doc = "an image that is the whole root: oci:PATH[:tag], docker-archive:FILE[:ref], or, "
            "fetched by "
            "skopeo, docker-daemon:NAME, docker://NAME"},
    {.name = "rootfs",
     .types = TYPE_TEXT,
     .flags = FIELD_NOT_EMPTY,
     .doc = "a folder that is the whole root, read-only, in place of the host's /usr; relative to "
            "the file; $VAR and ~ are expanded"},
    {.name = "expose",
     .types = TYPE_LIST,
     .items = TYPE_TEXT,
     .standard = "[]",
     .doc = "paths of the host that the cell sees, read-only, at the same place; $VAR and ~ are "
            "expanded"},
    {.name = "docker",
     .types = TYPE_BLOCK,
     .block = &docker_block,
     .state = FIELD_LATER,
     .doc = "settings of container engines"},
    {.name = "network",
     .types = TYPE_TEXT,
     .choices = network_choices,
     .standard = "none",
     .doc =
         "none: the cell has no network; broker: on a port of its own loopback the agent may ask "
         "the model that agent.model names, as the policy of the broker allows (CLOSEDBOOK_MODEL_"
         "URL and CLOSEDBOOK_MODEL_KEY tell it where), which is what agent programs like "
         "claude-code "
         "have without saying so; allowlist and open are not in this "
         "version"},
    LATER_LIST("egress_allowlist", "host:port that the agent may reach"),
    {.name = "setup_network",
     .types = TYPE_TEXT,
     .choices = network_choices,
     .state = FIELD_LATER,
     .idle = "none",
     .doc = "the network of pre_run and env_packages"},
    LATER_LIST("env_passthrough", "names of variables passed to the agent"),
    LATER_LIST("env_passthrough_extra", "the same, added to"),
    {.name = "host_state",
     .types = TYPE_LIST,
     .items = TYPE_BLOCK,
     .block = &host_state_block,
     .state = FIELD_LATER,
     .doc = "throwaway copies of host state"},
    {.name = "artifacts",
     .types = TYPE_BLOCK,
     .block = &artifacts_block,
     .state = FIELD_LATER,
     .doc = "what is kept of what the agent left"},
    {0},
};
const struct block sandbox_block = {.title = "sandbox", .fields = sandbox_fields, .layered = true};
