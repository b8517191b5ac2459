/* Rules for the text of a field. The regexes are what people read; a test holds the two together.
 */
#include "base/str.h"
#include "task/schema.h"

#define TASK_ID_CHARS_MAX 128
#define INSIDE_PATH_CHARS_MAX 4096

const char *form_regex(enum text_form form)
{
    switch (form) {
    case FORM_TASK_ID:
        return "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$";
    case FORM_TAG:
        return "^[a-z0-9]+(-[a-z0-9]+)*(:[a-z0-9]+(-[a-z0-9]+)*)?$";
    case FORM_INSIDE:
        return "^(?!/)(?!(.*/)?\\.\\.(/|$)).+$";
    case FORM_ENV:
        return "^[A-Za-z_][A-Za-z0-9_]*(=.*)?$";
    case FORM_KEBAB:
        return "^[a-z0-9]+(-[a-z0-9]+)*$";
    case FORM_VERSIONS:
        return "^ *(>=|<=|==|>|<|=)? *[0-9]+(\\.[0-9]+)* *(, *(>=|<=|==|>|<|=)? "
               "*[0-9]+(\\.[0-9]+)* *)*$";
    case FORM_COMMIT:
        return "^([0-9a-f]{40}|[0-9a-f]{64})$";
    case FORM_ANY:
    case FORM_COUNT:
        break;
    }
    return "";
}

const char *form_expected(enum text_form form)
{
    switch (form) {
    case FORM_TASK_ID:
        return "1 to 128 letters, digits, '_', '.' or '-', the first no '.' or '-'";
    case FORM_TAG:
        return "lower-case words joined by '-', with at most one ':'";
    case FORM_INSIDE:
        return "a relative path that stays inside (no leading '/', no '..')";
    case FORM_ENV:
        return "NAME or NAME=value";
    case FORM_KEBAB:
        return "lower-case words joined by '-'";
    case FORM_VERSIONS:
        return "versions as in '>= 1.2, < 2'";
    case FORM_COMMIT:
        return "the whole hash of a commit (40 or 64 lower-case hexadecimal digits)";
    case FORM_ANY:
    case FORM_COUNT:
        break;
    }
    return "a text";
}

static bool is_letter(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_task_id(const char *text)
{
    size_t length = strlen(text);

    if (length == 0 || length > TASK_ID_CHARS_MAX || text[0] == '.' || text[0] == '-')
        return false;
    for (const char *s = text; *s != '\0'; s++) {
        if (!is_letter(*s) && !is_digit(*s) && strchr("_.-", *s) == NULL)
            return false;
    }
    return true;
}

static bool is_tag(const char *text)
{
    bool in_word = false;
    int colon_count = 0;

    for (const char *s = text; *s != '\0'; s++) {
        if (is_digit(*s) || (*s >= 'a' && *s <= 'z')) {
            in_word = true;
            continue;
        }
        if ((*s != '-' && *s != ':') || !in_word)
            return false;
        colon_count += *s == ':';
        in_word = false;
    }
    return in_word && colon_count <= 1;
}

static bool is_inside(const char *text)
{
    if (text[0] == '\0' || text[0] == '/' || strlen(text) > INSIDE_PATH_CHARS_MAX)
        return false;
    for (const char *s = text; s != NULL; s = strchr(s, '/') == NULL ? NULL : strchr(s, '/') + 1) {
        if (s[0] == '.' && s[1] == '.' && (s[2] == '/' || s[2] == '\0'))
            return false;
    }
    return true;
}

static bool is_env(const char *text)
{
    const char *s = text;

    while (is_letter(*s) || *s == '_' || (s > text && is_digit(*s)))
        s++;
    return s > text && (*s == '\0' || *s == '=');
}

static bool is_kebab(const char *text)
{
    return is_tag(text) && strchr(text, ':') == NULL;
}

/* Past the blanks, an operator, a version and blanks; NULL: there is none. */
static const char *skip_version(const char *s)
{
    static const char *const operators[] = {">=", "<=", "==", ">", "<", "="};

    s += strspn(s, " ");
    for (size_t i = 0; i < ARRAY_SIZE(operators); i++) {
        if (str_starts(s, operators[i])) {
            s += strlen(operators[i]);
            break;
        }
    }
    s += strspn(s, " ");
    for (;; s++) {
        if (!is_digit(*s))
            return NULL;
        s += strspn(s, "0123456789");
        if (*s != '.')
            return s + strspn(s, " ");
    }
}

static bool is_versions(const char *text)
{
    const char *s = skip_version(text);

    while (s != NULL && *s == ',')
        s = skip_version(s + 1);
    return s != NULL && *s == '\0';
}

static bool is_commit(const char *text)
{
    size_t length = strlen(text);

    return (length == 40 || length == 64) && strspn(text, "0123456789abcdef") == length;
}

bool form_accepts(enum text_form form, const char *text)
{
    switch (form) {
    case FORM_TASK_ID:
        return is_task_id(text);
    case FORM_TAG:
        return is_tag(text);
    case FORM_INSIDE:
        return is_inside(text);
    case FORM_ENV:
        return is_env(text);
    case FORM_KEBAB:
        return is_kebab(text);
    case FORM_VERSIONS:
        return is_versions(text);
    case FORM_COMMIT:
        return is_commit(text);
    case FORM_ANY:
    case FORM_COUNT:
        break;
    }
    return true;
}
