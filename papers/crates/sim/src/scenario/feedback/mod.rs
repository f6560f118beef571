//! Which of the papers' controllers a scenario names, with its parameters.

use onbeat_decide::predictor::Parameters;
use onbeat_lfspp::Config;
use onbeat_lfspp::reference::{Adaptive, Lfs, LfsPlusPlus, ReferenceController};

use super::file::{Feedback, ScenarioFile};
use super::task::above_zero;

pub(super) fn method(
    file: &ScenarioFile,
    written: &Feedback,
) -> Result<ReferenceController, String> {
    if file.onbeat.is_some() {
        return Err("one loop at a time: leave out [onbeat] or [feedback]".into());
    }
    match ReferenceController::named(&written.method) {
        Some(ReferenceController::Lfs(usual)) => lfs(usual, written).map(ReferenceController::Lfs),
        Some(ReferenceController::LfsPlusPlus(usual)) => {
            lfspp(usual, written).map(ReferenceController::LfsPlusPlus)
        }
        Some(ReferenceController::Adaptive(usual)) => Ok(ReferenceController::Adaptive(Adaptive {
            group: written.group.unwrap_or(usual.group),
            parameters: parameters(usual.parameters, written)?,
        })),
        None => Err(format!(
            "no method '{}': write one of {}",
            written.method,
            ReferenceController::NAMES.join(", ")
        )),
    }
}

fn lfs(usual: Lfs, written: &Feedback) -> Result<Lfs, String> {
    let server_period = match written.server_period {
        Some(period) => above_zero("server_period", period)?,
        None => usual.server_period,
    };
    Ok(Lfs {
        server_period,
        ..usual
    })
}

fn lfspp(usual: LfsPlusPlus, written: &Feedback) -> Result<LfsPlusPlus, String> {
    let analyser = Config {
        threshold: written.alpha.unwrap_or(usual.analyser.threshold),
        tolerance_hz: written.epsilon_hz.unwrap_or(usual.analyser.tolerance_hz),
        multiples: written.k_max.unwrap_or(usual.analyser.multiples),
        lowest_hz: written.f_min_hz.unwrap_or(usual.analyser.lowest_hz),
        highest_hz: written.f_max_hz.unwrap_or(usual.analyser.highest_hz),
        ..usual.analyser
    };
    analyser.bins()?;
    let sampling = match written.sampling {
        Some(time) => above_zero("sampling", time)?,
        None => usual.sampling,
    };
    Ok(LfsPlusPlus {
        analyser,
        sampling,
        parameters: parameters(usual.parameters, written)?,
        ..usual
    })
}

fn parameters(usual: Parameters, written: &Feedback) -> Result<Parameters, String> {
    let spread = written.spread.unwrap_or(usual.spread);
    if !(spread.is_finite() && spread >= 0.0) {
        return Err(format!("spread = {spread}: write a number from 0 on"));
    }
    Ok(Parameters {
        spread,
        window: written.window.unwrap_or(usual.window),
        above: written.above.unwrap_or(usual.above),
        ..usual
    })
}

#[cfg(test)]
mod tests;
