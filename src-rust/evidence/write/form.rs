//! The sections of a summary and their headings, in each form.

/// A section of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Part {
    Request,
    Rules,
    Agent,
    State,
    Open,
    Next,
    Files,
    Commands,
    Background,
    Names,
}

impl Part {
    /// The item as written on the page, with its line end: further lines are indented.
    pub(super) fn item(self, text: &str) -> String {
        let mut out = String::with_capacity(text.len() + 16);
        for (i, line) in text.lines().enumerate() {
            out.push_str(if i == 0 { "- " } else { "  " });
            out.push_str(line.trim_end());
            out.truncate(out.trim_end_matches(' ').len());
            out.push('\n');
        }
        out
    }
}

/// The headings of a summary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// The sections that foldline writes by default.
    #[default]
    Handover,
    /// Goal, constraints, progress, decisions, next steps, context, and two lists of files.
    Document,
    /// Original task, completed work, decisions, current state, pending work, errors.
    Session,
}

impl Form {
    /// The sections in order, each with its heading; a heading that follows itself is written once.
    pub(super) fn sections(self) -> &'static [(Part, &'static str)] {
        match self {
            Form::Handover => &[
                (Part::Request, "## Current request"),
                (Part::Rules, "## Rules and decisions"),
                (Part::Agent, "## Decisions of the agent"),
                (Part::State, "## State"),
                (Part::Open, "## Open problems"),
                (Part::Next, "## Next steps"),
                (Part::Files, "## Files"),
                (Part::Commands, "## Commands"),
                (Part::Background, "## Background"),
                (Part::Names, "## Names"),
            ],
            Form::Document => &[
                (Part::Request, "## Goal"),
                (Part::Rules, "## Constraints & Preferences"),
                (Part::State, "## Progress\n### Done"),
                (Part::Open, "### Blocked"),
                (Part::Agent, "## Key Decisions"),
                (Part::Next, "## Next Steps"),
                (Part::Commands, "## Commands"),
                (Part::Names, "## Critical Context"),
                (Part::Background, "## Critical Context"),
                (Part::Files, ""),
            ],
            Form::Session => &[
                (Part::Request, "#### Original Task"),
                (Part::Rules, "#### Constraints"),
                (Part::Files, "#### Completed Work"),
                (Part::Agent, "#### Key Technical Decisions"),
                (Part::State, "#### Current State"),
                (Part::Next, "#### Pending Work"),
                (Part::Open, "#### Errors & Resolutions"),
                (Part::Commands, "#### Commands"),
                (Part::Names, "#### Context"),
                (Part::Background, "#### Context"),
            ],
        }
    }

    pub(super) fn heading(self, part: Part) -> &'static str {
        self.sections().iter().find(|(known, _)| *known == part).map_or("", |(_, heading)| heading)
    }
}
