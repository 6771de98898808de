//! The agent's task list: `TodoWrite` and `update_plan` state it completely, `TaskCreate` and `TaskUpdate` change
//! single items.

use std::collections::HashMap;

use crate::evidence::language::steps::telling;
use crate::evidence::text::{escape_section_tags, one_line};
use crate::evidence::{Note, Task, TaskStatus};

/// Longest text of a task.
pub(super) const MAX_TASK_CHARS: usize = 240;
/// Most tasks kept.
const MAX_TASKS: usize = 500;

/// The status for an agent's word.
pub(in crate::evidence) fn status_of(word: &str) -> TaskStatus {
    match word {
        "completed" | "done" | "complete" => TaskStatus::Completed,
        "in_progress" | "in-progress" | "active" | "doing" => TaskStatus::InProgress,
        "blocked" | "failed" => TaskStatus::Blocked,
        _ => TaskStatus::Pending,
    }
}

/// The list after all calls so far.
#[derive(Debug, Default)]
pub(super) struct TaskList {
    tasks: Vec<Task>,
    /// Tasks created one by one, by the agent's number.
    by_number: HashMap<String, usize>,
    created: usize,
}

impl TaskList {
    /// Replaces the list: open tasks missing from the new one are dropped, completed ones stay.
    pub(in crate::evidence) fn replace(&mut self, message: usize, list: Vec<(String, TaskStatus)>) {
        self.tasks.retain(|task| task.status == TaskStatus::Completed);
        self.by_number.clear();
        for (text, status) in list.into_iter().take(MAX_TASKS) {
            self.push(message, &text, status);
        }
    }

    /// Adds a task; `number` is the one in the result.
    pub(super) fn create(&mut self, message: usize, text: &str, number: Option<&str>) {
        self.created += 1;
        let number = number.map_or_else(|| self.created.to_string(), str::to_owned);
        self.push(message, text, TaskStatus::Pending);
        if let Some(last) = self.tasks.len().checked_sub(1) {
            self.by_number.insert(number, last);
        }
    }

    /// Changes the status of a task.
    pub(super) fn update(&mut self, message: usize, number: &str, status: &str) {
        let Some(task) = self.by_number.get(number).and_then(|&at| self.tasks.get_mut(at)) else { return };
        task.message = message;
        if status == "deleted" {
            task.text.clear();
        } else {
            task.status = status_of(status);
        }
    }

    /// Adds a task with its status.
    pub(in crate::evidence) fn push(&mut self, message: usize, text: &str, status: TaskStatus) {
        let text = one_line(&escape_section_tags(text), MAX_TASK_CHARS);
        self.tasks.push(Task { message, text, status });
    }

    /// The user drops something: the open tasks that name it.
    pub(super) fn drop_by(&mut self, words: &str) {
        let said = telling(words);
        let is_named = |task: &Task| {
            let own = telling(&task.text);
            said.iter().any(|word| word.len() > 4 && own.contains(word))
        };
        self.tasks
            .iter_mut()
            .filter(|task| task.status != TaskStatus::Completed && is_named(task))
            .for_each(|task| task.text.clear());
    }

    /// The open tasks, and notes of the completed ones.
    pub(super) fn finish(self) -> (Vec<Task>, Vec<Note>) {
        let mut newest: HashMap<&str, usize> = HashMap::new();
        for (i, task) in self.tasks.iter().enumerate() {
            newest.insert(&task.text, i);
        }
        let is_newest = |i: usize, task: &Task| newest.get(task.text.as_str()) == Some(&i);
        let kept =
            self.tasks.iter().enumerate().filter(|(i, task)| !task.text.is_empty() && is_newest(*i, task));
        let (mut open, mut completed) = (Vec::new(), Vec::new());
        for (_, task) in kept {
            if task.status == TaskStatus::Completed {
                completed.push(Note::new(task.message, task.text.clone()));
            } else {
                open.push(task.clone());
            }
        }
        (open, completed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_list_replaces_the_open_tasks_and_keeps_the_completed() {
        let mut list = TaskList::default();
        list.replace(1, vec![("a".into(), TaskStatus::InProgress), ("b".into(), TaskStatus::Pending)]);
        list.replace(5, vec![("a".into(), TaskStatus::Completed)]);
        list.replace(9, vec![("c".into(), TaskStatus::InProgress)]);
        let (open, completed) = list.finish();
        assert_eq!(open, [Task { message: 9, text: "c".into(), status: TaskStatus::InProgress }]);
        assert_eq!(completed, [Note::new(5, "a")]);
    }

    #[test]
    fn what_the_user_drops_is_no_task() {
        let mut list = TaskList::default();
        let tasks = ["Storybook story with a long list", "Playwright test"];
        list.replace(1, tasks.map(|text| (text.into(), TaskStatus::Pending)).into());
        list.drop_by("and skip the storybook thing");
        let (open, _) = list.finish();
        assert_eq!(open.iter().map(|task| &*task.text).collect::<Vec<_>>(), ["Playwright test"]);
    }

    #[test]
    fn tasks_created_one_by_one_are_updated_by_number() {
        let mut list = TaskList::default();
        list.create(1, "first", Some("7"));
        list.create(1, "second", None);
        list.create(1, "third", None);
        list.update(2, "7", "completed");
        list.update(3, "2", "in_progress");
        list.update(3, "3", "deleted");
        list.update(3, "99", "completed");
        let (open, completed) = list.finish();
        assert_eq!(open, [Task { message: 3, text: "second".into(), status: TaskStatus::InProgress }]);
        assert_eq!(completed.len(), 1);
    }
}
