//! The agent's task list: `TodoWrite` and `update_plan` state it completely, `TaskCreate` and `TaskUpdate` change
//! single items.

use std::collections::HashMap;

use crate::evidence::language::steps::telling;
use crate::evidence::text::{escape_section_tags, one_line};
use crate::evidence::{Note, Task, TaskStatus};

/// Longest text of a task.
pub(super) const MAX_TASK_CHARS: usize = 240;
/// Most tasks kept.
pub(super) const MAX_TASKS: usize = 500;

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
    /// The completed tasks of earlier lists, which no longer change.
    completed: Vec<Task>,
    tasks: Vec<Task>,
    /// Tasks created one by one, by the agent's number.
    by_number: HashMap<String, usize>,
    created: usize,
    /// The open tasks by their telling words, as far as they were read for the user's drops.
    by_word: HashMap<String, Vec<usize>>,
    /// The number of tasks whose words were read.
    read: usize,
}

impl TaskList {
    /// Replaces the list: open tasks missing from the new one are dropped, completed ones stay.
    pub(in crate::evidence) fn replace(&mut self, message: usize, list: Vec<(String, TaskStatus)>) {
        let before = self.tasks.drain(..);
        self.completed.extend(before.filter(|task| task.status == TaskStatus::Completed));
        self.by_number.clear();
        self.by_word.clear();
        self.read = 0;
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
        let Some(&at) = self.by_number.get(number) else { return };
        let Some(task) = self.tasks.get_mut(at) else { return };
        task.message = message;
        if status == "deleted" {
            task.text.clear();
        } else {
            let was_completed = task.status == TaskStatus::Completed;
            task.status = status_of(status);
            // A drop forgets the completed tasks that it names.
            if was_completed && at < self.read {
                self.read_words(at);
            }
        }
    }

    fn read_words(&mut self, at: usize) {
        for word in telling(&self.tasks[at].text).into_iter().filter(|word| word.len() > 4) {
            self.by_word.entry(word).or_default().push(at);
        }
    }

    /// Adds a task with its status.
    pub(in crate::evidence) fn push(&mut self, message: usize, text: &str, status: TaskStatus) {
        let text = one_line(&escape_section_tags(text), MAX_TASK_CHARS);
        self.tasks.push(Task { message, text, status });
    }

    /// The user drops something: the open tasks that name it. O(words), and O(1) for each task and word once.
    pub(super) fn drop_by(&mut self, words: &str) {
        for at in self.read..self.tasks.len() {
            self.read_words(at);
        }
        self.read = self.tasks.len();
        for at in telling(words).iter().filter_map(|word| self.by_word.remove(word)).flatten() {
            let task = &mut self.tasks[at];
            if task.status != TaskStatus::Completed {
                task.text.clear();
            }
        }
    }

    /// The open tasks, and notes of the completed ones.
    pub(super) fn finish(self) -> (Vec<Task>, Vec<Note>) {
        let tasks = [self.completed, self.tasks].concat();
        let mut newest: HashMap<&str, usize> = HashMap::new();
        for (i, task) in tasks.iter().enumerate() {
            newest.insert(&task.text, i);
        }
        let is_newest = |i: usize, task: &Task| newest.get(task.text.as_str()) == Some(&i);
        let kept = tasks.iter().enumerate().filter(|(i, task)| !task.text.is_empty() && is_newest(*i, task));
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
    fn a_task_that_is_opened_again_can_be_dropped_again() {
        let mut list = TaskList::default();
        for text in ["Storybook story", "Storybook theme"] {
            list.create(1, text, None);
        }
        list.update(2, "1", "completed");
        list.drop_by("skip the storybook thing");
        list.update(4, "1", "in_progress");
        let texts = |list: &TaskList| list.tasks.iter().map(|task| task.text.clone()).collect::<Vec<_>>();
        assert_eq!(texts(&list), ["Storybook story", ""]);
        list.drop_by("skip the storybook thing");
        assert_eq!(texts(&list), ["", ""]);
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
