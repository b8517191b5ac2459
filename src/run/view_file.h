#pragma once
/*
 * view_file: view.jsonl (docs/formats/view.md): what an agent's cell was made of, written before
 * the cell starts: the prompt, the program and its words, names of the environment, descriptors,
 * mounts, texts, the workspace's place and limits, and every path of the staged workspace and
 * plugins with its digest.
 *
 * It is composed from the request that the cell is made by. trial.json has its digest, and the
 * journal that of trial.json. Depends on: cell, stage, agent.
 */

#include "agent/agent.h"
#include "run/trial.h"

/* spec is whole, but for its command, which is given. */
must_check int view_file_save(const struct trial_job *job, const struct agent_turn *turn,
                              const struct cell_spec *spec, const struct cell_command *command,
                              struct error **err) nonnull(1, 2, 3, 4);
