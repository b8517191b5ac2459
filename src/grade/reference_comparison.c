/* How like a file of the reference a file of the workspace is: docs/formats/similarity.md. */
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "grade/internal.h"
#include "grade/similarity.h"

#define COMPARED_BYTES_MAX ((size_t)4 << 20)
#define NO_PYTHON 3 /* what the program below ends with when the file is not Python */
#define SAID_BYTES_MAX 400

/*
 * Prints the types of a Python file's syntax tree, parents first. Nothing of the file runs. -I: not
 * a module of the workspace, and no variable, has a say. No quote ' may stand in it.
 */
static const char print_tree[] =
    "import ast, sys\n"
    "try:\n"
    "    tree = ast.parse(open(sys.argv[1], \"rb\").read())\n"
    "except Exception as problem:\n"
    "    print(type(problem).__name__, str(problem)[:300], file=sys.stderr)\n"
    "    sys.exit(3)\n"
    "waiting = [tree]\n"
    "while waiting:\n"
    "    node = waiting.pop()\n"
    "    if not isinstance(node, ast.expr_context):\n"
    "        print(type(node).__name__)\n"
    "    waiting.extend(reversed(list(ast.iter_child_nodes(node))))\n";

struct comparing {
    const struct grade_input *input;
    struct verdict *verdict; /* set when it returns without having compared */
    const char *path, *reference;
    struct grade_file file, wanted;
    struct buf details;
};

static void comparing_done(struct comparing *comparing)
{
    grade_file_done(&comparing->file);
    grade_file_done(&comparing->wanted);
    buf_done(&comparing->details);
}

void reference_comparison_check(const struct criterion *criterion,
                                const struct complaints *complaints)
{
    static const char *const names[] = {"agent_file", "reference_file"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        const json_t *value = json_object_get(criterion->params, names[i]);
        const char *path = json_string_value(value);
        scoped(mem_freep) char *place = str_format("/%s", names[i]);

        if (path == NULL || path[0] == '\0')
            complain(complaints, place, "expected the path of a file");
        else if (strlen(path) != json_string_length(value))
            complain(complaints, place, "holds a NUL character");
        else if (!path_is_inside(path))
            complain(complaints, place, "'%s' leads out of its folder", path);
    }
    double threshold = json_get_real(criterion->params, "similarity_threshold", 0.8);

    if (!(threshold >= 0 && threshold <= 1))
        complain(complaints, "/similarity_threshold", "expected a number from 0 to 1");
}

/* --- the two files --------------------------------------------------------------------------- */

static int read_files(struct comparing *comparing, bool *ret, struct error **err)
{
    const struct grade_workspace *workspace = comparing->input->workspace;
    struct buf *details = &comparing->details;
    int r = workspace->private_file(workspace->context, GRADE_REFERENCE_DIR, comparing->reference,
                                    &comparing->wanted, err);

    *ret = false;
    if (r < 0)
        return r;
    if (comparing->wanted.state != GRADE_FILE_OK ||
        comparing->wanted.content.size_bytes > COMPARED_BYTES_MAX) {
        buf_text_append(details, "reference: ");
        content_explain(comparing->reference, &comparing->wanted, details);
        buf_format(details, ", expected one of at most %zu bytes", COMPARED_BYTES_MAX);
        verdict_error(comparing->verdict, details);
        return 0;
    }
    r = workspace->read(workspace->context, comparing->path, true, &comparing->file, err);
    if (r < 0)
        return r;
    if (comparing->file.state != GRADE_FILE_OK) {
        content_explain(comparing->path, &comparing->file, details);
        verdict_score(comparing->verdict, 0, details);
        return 0;
    }
    if (comparing->file.content.size_bytes > COMPARED_BYTES_MAX) {
        buf_format(details, "'%s' is larger than %zu bytes", comparing->path, COMPARED_BYTES_MAX);
        verdict_score(comparing->verdict, 0, details);
        return 0;
    }
    if (comparing->file.resolved != NULL) {
        buf_format(details, "'%s' is '%s'\n", comparing->path, comparing->file.resolved);
        comparing->path = comparing->file.resolved;
    }
    *ret = true;
    return 0;
}

/* --- syntax trees ---------------------------------------------------------------------------- */

static bool is_python(const char *path)
{
    return str_ends(path, ".py") || str_ends(path, ".pyi");
}

/* In the quotes of a shell. */
static void append_quoted(struct buf *command, const char *text)
{
    buf_char(command, '\'');
    for (; *text != '\0'; text++) {
        if (*text == '\'')
            buf_text_append(command, "'\\''");
        else
            buf_char(command, *text);
    }
    buf_char(command, '\'');
}

static int list_tree(const struct comparing *comparing, const char *folder, const char *path,
                     struct grade_command_result *ret, struct error **err)
{
    const struct grade_workspace *workspace = comparing->input->workspace;
    scoped(buf_done) struct buf text = {0};

    buf_text_append(&text, "exec python3 -I -B -c ");
    append_quoted(&text, print_tree);
    buf_format(&text, " %s", folder);
    append_quoted(&text, path);

    const struct grade_command command = {
        .command = buf_text(&text),
        .timeout_ms = comparing->input->command_timeout_ms,
        .output_max_bytes = GRADE_OUTPUT_BYTES_MAX / 2,
        .looks_only = true,
    };

    return workspace->run(workspace->context, &command, ret, err);
}

static void say_no_tree(struct buf *details, const char *path,
                        const struct grade_command_result *result)
{
    buf_format(details, "'%s' cannot be read as Python: ", path);
    if (result->timed_out)
        buf_text_append(details, "it takes too long\n");
    else if (result->exit_code == NO_PYTHON)
        details_quote(details, buf_text(&result->err), result->err.size_bytes, SAID_BYTES_MAX);
    else
        buf_format(details, "python3 ended with %s %d\n",
                   result->exit_code < 0 ? "signal" : "exit code",
                   result->exit_code < 0 ? result->term_signal : result->exit_code);
}

static bool has_tree(const struct grade_command_result *result)
{
    return !result->timed_out && result->exit_code == 0 && !result->out_cut;
}

/* A file of the author's that is no Python is an error; the agent's has nothing in common. */
static int compare_trees(struct comparing *comparing, double *ret, struct error **err)
{
    scoped(grade_command_result_done) struct grade_command_result wanted = {0};
    scoped(grade_command_result_done) struct grade_command_result got = {0};
    struct buf *details = &comparing->details;
    int r = list_tree(comparing, "\"$REFERENCE_DIR\"/", comparing->reference, &wanted, err);

    if (r < 0)
        return r;
    if (!has_tree(&wanted)) {
        if (wanted.missing_tool)
            buf_text_append(details, "the grading cell has no 'python3', which the method 'ast' "
                                     "needs for Python files: take 'structure', or a cell with it");
        else
            say_no_tree(details, comparing->reference, &wanted);
        verdict_error(comparing->verdict, details);
        return 0;
    }
    r = list_tree(comparing, "./", comparing->path, &got, err);
    if (r < 0)
        return r;
    *ret = 0;
    if (has_tree(&got))
        *ret = similarity_of_words(&got.out, &wanted.out);
    else
        say_no_tree(details, comparing->path, &got);
    return 0;
}

/* --- the verdict ----------------------------------------------------------------------------- */

static enum similarity_method method_of(const char *name)
{
    if (str_equal(name, "token"))
        return SIMILARITY_TOKEN;
    if (str_equal(name, "line"))
        return SIMILARITY_LINE;
    return str_equal(name, "complexity") ? SIMILARITY_COMPLEXITY : SIMILARITY_STRUCTURE;
}

static void show_complexity(struct buf *details, const char *what,
                            const struct similarity_text *text)
{
    struct complexity complexity = complexity_of(text);

    buf_format(details, "%s: %llu lines, %llu branches, %llu definitions\n", what,
               (unsigned long long)complexity.lines, (unsigned long long)complexity.branches,
               (unsigned long long)complexity.definitions);
}

static double compare_texts(struct comparing *comparing, const char *name)
{
    const struct similarity_text mine = {buf_text(&comparing->file.content),
                                         comparing->file.content.size_bytes,
                                         comment_style_of(comparing->path)};
    const struct similarity_text wanted = {buf_text(&comparing->wanted.content),
                                           comparing->wanted.content.size_bytes,
                                           comment_style_of(comparing->reference)};
    enum similarity_method method = method_of(name);

    if (method == SIMILARITY_COMPLEXITY) {
        show_complexity(&comparing->details, "file", &mine);
        show_complexity(&comparing->details, "reference", &wanted);
    }
    return similarity(method, &mine, &wanted);
}

static void conclude(const json_t *params, struct comparing *comparing, const char *method,
                     double score)
{
    double threshold = json_get_real(params, "similarity_threshold", 0.8);

    buf_format(&comparing->details, "%s similarity %.4f, %s similarity_threshold %g\n", method,
               score, score >= threshold ? "at or above" : "below", threshold);
    verdict_score(comparing->verdict, score, &comparing->details);
}

int reference_comparison_evaluate(const struct criterion *criterion,
                                  const struct grade_input *input, struct verdict *ret,
                                  struct error **err)
{
    const json_t *params = criterion->params;
    const char *method = json_get_text(params, "comparison_method");
    scoped(comparing_done) struct comparing comparing = {
        .input = input,
        .verdict = ret,
        .path = json_get_text(params, "agent_file"),
        .reference = json_get_text(params, "reference_file"),
        .details = DETAILS_INIT,
    };
    bool readable = false;
    double score = 0;
    int r = read_files(&comparing, &readable, err);

    if (r < 0 || !readable)
        return r;
    if (method == NULL || str_equal(method, "ast"))
        method = is_python(comparing.path) && is_python(comparing.reference) ? "ast" : "structure";
    if (str_equal(method, "ast"))
        r = compare_trees(&comparing, &score, err);
    else
        score = compare_texts(&comparing, method);
    if (r == 0 && !ret->errored)
        conclude(params, &comparing, method, score);
    return r;
}
