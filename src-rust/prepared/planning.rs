//! Plans and trims of a prepared list, with pins for one call beside those of the list.

use super::Prepared;
use crate::count::counter::{Counter, Interrupt};
use crate::error::Result;
use crate::plan::{
    LastCut, PlanInput, PlanOptions, Planned, PrefixSums, TrimOptions, newest_user, plan_with_summary,
    trim_floor, trim_input,
};
use crate::rules::{Incremental, Pins, Structure};

impl Prepared {
    /// Plans as [`crate::plan::plan`] does for the same messages. `pins` are added to the list's own annotations; with
    /// any, planning is O(messages).
    ///
    /// # Errors
    /// Those of [`crate::plan::plan`] and [`Pins::check`].
    pub fn plan(
        &mut self,
        pins: &Pins,
        request: PlanOptions,
        counter: &dyn Counter,
        check: Interrupt<'_>,
    ) -> Result<Planned> {
        self.update();
        self.plan_settled(pins, request, counter, check)
    }

    /// As [`Prepared::plan`], for a list unchanged since [`Prepared::update`].
    ///
    /// # Errors
    /// Those of [`Prepared::plan`].
    pub fn plan_settled(
        &self,
        pins: &Pins,
        request: PlanOptions,
        counter: &dyn Counter,
        check: Interrupt<'_>,
    ) -> Result<Planned> {
        self.plan_with_summary(pins, request, |_, _| Ok(request.summary_tokens), counter, check)
    }

    /// As [`Prepared::plan_settled`]; the tokens of the summary follow from the last cut.
    ///
    /// # Errors
    /// Those of [`Prepared::plan`] and of `summary`.
    pub fn plan_with_summary(
        &self,
        pins: &Pins,
        request: PlanOptions,
        summary: impl FnOnce(LastCut<'_>, Interrupt<'_>) -> Result<u64>,
        counter: &dyn Counter,
        check: Interrupt<'_>,
    ) -> Result<Planned> {
        self.check_settled()?;
        if *pins == Pins::default() {
            let input = self.input(self.incremental.structure(), &self.sums, counter);
            return plan_with_summary(&input, request, summary, check);
        }
        let pins = self.incremental.resolved(pins)?;
        let (incremental, sums) = self.pinned_also(&self.incremental, &self.sums, &pins)?;
        plan_with_summary(&self.input(incremental.structure(), &sums, counter), request, summary, check)
    }

    /// Trims a settled list. The newest user message is kept wherever that fits. O(messages).
    ///
    /// # Errors
    /// Those of [`Prepared::plan`].
    pub fn trim_settled(
        &self,
        pins: &Pins,
        options: TrimOptions,
        counter: &dyn Counter,
        check: Interrupt<'_>,
    ) -> Result<Planned> {
        self.check_settled()?;
        let pinned;
        let (incremental, sums) = if *pins == Pins::default() {
            (&self.incremental, &self.sums)
        } else {
            pinned = self.pinned_also(&self.incremental, &self.sums, &self.incremental.resolved(pins)?)?;
            (&pinned.0, &pinned.1)
        };
        let structure = incremental.structure();
        let newest = newest_user(&self.chunks, structure).filter(|&i| structure.counts(i));
        let Some(newest) = newest.filter(|_| options.keep_newest_user) else {
            return trim_input(&self.input(structure, sums, counter), options, None, check);
        };
        let newest_pin = Pins { indices: vec![newest], ..Pins::default() };
        let (keeping, keeping_sums) = self.pinned_also(incremental, sums, &newest_pin)?;
        let keeping = self.input(keeping.structure(), &keeping_sums, counter);
        let without = self.input(structure, sums, counter);
        match trim_input(&keeping, options, Some(newest), check)? {
            Planned::Plan(mut plan) => {
                plan.floor = plan.floor.min(trim_floor(&without, options, check)?);
                Ok(Planned::Plan(plan))
            }
            Planned::Infeasible(kept) => {
                let mut planned = trim_input(&without, options, None, check)?;
                match &mut planned {
                    Planned::Plan(plan) => plan.floor = plan.floor.min(kept.floor),
                    Planned::Infeasible(other) if kept.floor < other.floor => *other = kept,
                    Planned::Infeasible(_) => {}
                }
                Ok(planned)
            }
        }
    }

    /// Structure and sums with more pins. O(messages).
    fn pinned_also(
        &self,
        incremental: &Incremental,
        sums: &PrefixSums,
        pins: &Pins,
    ) -> Result<(Incremental, PrefixSums)> {
        let (mut incremental, mut sums) = (incremental.clone(), sums.clone());
        incremental.pin(pins)?;
        let from = incremental.update();
        sums.update(incremental.structure(), &self.counts.per_message, from);
        Ok((incremental, sums))
    }

    fn input<'a>(
        &'a self,
        structure: &'a Structure,
        sums: &'a PrefixSums,
        counter: &'a dyn Counter,
    ) -> PlanInput<'a> {
        PlanInput {
            source: &self.chunks,
            format: self.format(),
            structure,
            counts: &self.counts,
            sums,
            counter,
            fingerprint: self.fingerprint,
        }
    }
}
