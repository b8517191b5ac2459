/*
 * Writes records of every kind, made by the program's own writers, into a new directory DIR: a run
 * with its trials, events, a report and a JUnit file. check_formats.py holds them against schema/.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "agent/atif.h"
#include "agent/events.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/mem.h"
#include "record/run_dir.h"
#include "record/testing.h"
#include "report/report.h"
#include "report/samples.h"

/* Bytes that no format may pass on as they are. */
#define HOSTILE "evil\033]52;c;aGk=\007\xe2\x80\xae\xe2\x80\xac\xff<b>&\"']]>\xef\xbf\xbf"

static const char agent_lines[] =
    "{\"kind\":\"turn_start\",\"session\":\"s1\"}\n"
    "{\"kind\":\"tool_call\",\"tool\":\"bash\",\"call_id\":1,\"input\":{\"command\":\"ls\"}}\n"
    "{\"kind\":\"tool_result\",\"call_id\":\"1\",\"output\":\"a\\n\",\"exit_code\":0}\n"
    "{\"kind\":\"usage\",\"usage\":{\"input_tokens\":12,\"output_tokens\":3}}\n"
    "{\"kind\":\"text\",\"output\":\"done \xff\"}\n"
    "this is no event\n"
    "{\"kind\":\"turn_end\"}\n"
    "{\"kind\":\"tool_ca";

static json_t *planned(const struct run_trials *trials)
{
    json_t *plan = json_object();
    json_t *tasks = json_object();
    json_t *list = json_array();

    for (size_t i = 0; i < trials->count; i++) {
        const struct trial_record *record = &trials->records[i];
        json_t *task = json_object();
        json_t *item = json_object();

        json_put(task, "public", json_sprintf("sha256:%064zu", i));
        json_put(task, "graders", json_sprintf("sha256:%064zu", i + 1));
        json_put(task, "config", json_sprintf("sha256:%064zu", i + 2));
        json_put(task, "skip", json_null());
        json_put(tasks, record->task_id, task);
        json_put_int(item, "index", (int64_t)i);
        json_put_text(item, "trial", trials->paths[i] + strlen("trials/"));
        json_put_text(item, "task_id", record->task_id);
        json_put_text(item, "variant_id", record->variant_id);
        json_put_int(item, "replicate", record->replicate);
        json_push(list, item);
    }
    json_put_text(plan, "schema", PLAN_SCHEMA);
    json_put(plan, "inputs", json_object());
    json_put(plan, "tasks", tasks);
    json_put(plan, "trials", list);
    return plan;
}

static int emit_events(int trial_fd, struct error **err)
{
    scoped(event_log_done) struct event_log log = {0};
    scoped(event_reader_freep) struct event_reader *reader =
        event_reader_new(&log, EVENT_SELF_REPORTED, clock_ns());
    scoped(buf_done) struct buf text = {0};

    event_log_add(&log, EVENT_AGENT_START, EVENT_SELF_REPORTED)->agent = str_dup("script");
    event_reader_feed(reader, agent_lines, strlen(agent_lines));
    event_reader_end(reader);
    event_log_add(&log, EVENT_AGENT_END, EVENT_SELF_REPORTED)->agent = str_dup("script");
    event_log_write(&text, &log);

    scoped(json_freep) json_t *trajectory = atif_export(
        &log, &(struct atif_about){.agent = "script", .prompt = "do it", .trial = "default/t/00"});
    scoped(buf_done) struct buf whole = {0};

    json_write_pretty(&whole, trajectory);
    int r =
        fs_write_atomic(trial_fd, "events.jsonl",
                        &(struct fs_content){text.data, text.size_bytes, 0600, FS_NO_SYNC}, err);

    return r < 0 ? r
                 : fs_write_atomic(
                       trial_fd, "trajectory.json",
                       &(struct fs_content){whole.data, whole.size_bytes, 0600, FS_NO_SYNC}, err);
}

static int emit_trial(struct run_dir *run, struct run_trials *trials, size_t i, struct error **err)
{
    scoped(fd_closep) int fd = -1;
    json_t *line = json_object();
    int r = run_dir_open_trial(run, trials->paths[i], true, &fd, err);

    if (r == 0)
        r = emit_events(fd, err);
    if (r == 0)
        r = trial_record_save(fd, &trials->records[i], err);
    json_put_text(line, "event", "finish");
    json_put_text(line, "trial", trials->paths[i] + strlen("trials/"));
    json_put_text(line, "status", trial_status_name(trials->records[i].status));
    run_dir_journal(run, line);
    return r;
}

static int emit_report(const struct run_dir *run, const struct run_trials *trials, const char *name,
                       struct error **err)
{
    scoped(buf_done) struct buf junit = {0};
    scoped(buf_done) struct buf text = {0};
    scoped(json_freep) json_t *json = report_json(trials, run_dir_id(run));
    scoped(mem_freep) char *junit_name = str_format("%s.xml", name);
    scoped(mem_freep) char *json_name = str_format("%s.json", name);
    int fd = run_dir_fd(run);

    report_junit(&junit, trials, run_dir_id(run));
    report_json_write(&text, json);

    int r = fs_write_atomic(
        fd, junit_name, &(struct fs_content){junit.data, junit.size_bytes, 0600, FS_NO_SYNC}, err);

    if (r == 0)
        r = fs_write_atomic(
            fd, json_name, &(struct fs_content){text.data, text.size_bytes, 0600, FS_NO_SYNC}, err);
    return r;
}

static int emit(const char *path, struct error **err)
{
    const struct run_facts facts = {.run_id = "samples", .version = "0", .command_line = "run x"};
    scoped(run_trials_done) struct run_trials trials = samples_every_kind();
    scoped(run_trials_done) struct run_trials hostile = samples_hostile(HOSTILE);
    scoped(json_freep) json_t *plan = planned(&trials);
    scoped(run_dir_closep) struct run_dir *run = NULL;
    int r = run_dir_create(path, &facts, plan, &run, err);

    for (size_t i = 0; r == 0 && i < trials.count; i++)
        r = emit_trial(run, &trials, i, err);
    /* Ids of tasks are checked ones; only the other texts are an agent's. */
    samples_set(&hostile.records[0].task_id, "hostile");
    samples_set(&hostile.records[0].variant_id, "default");
    samples_set(&hostile.paths[0], "trials/default/hostile/00");
    samples_set(&hostile.records[0].error_code, "bug");
    if (r == 0)
        r = emit_trial(run, &hostile, 0, err);
    if (r == 0)
        r = run_dir_commit(run, err);
    if (r == 0)
        r = emit_report(run, &trials, "report", err);
    return r == 0 ? emit_report(run, &hostile, "hostile", err) : r;
}

int main(int argc, char **argv)
{
    scoped(error_freep) struct error *err = NULL;

    if (argc != 2) {
        (void)fprintf(stderr, "usage: emit_samples DIR\n"); /* nothing better to do with it */
        return 2;
    }
    if (emit(argv[1], &err) < 0) {
        (void)fprintf(stderr, "emit_samples: %s\n", error_message(err)); /* as above */
        return 1;
    }
    return 0;
}
