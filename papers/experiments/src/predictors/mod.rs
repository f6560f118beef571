//! Which predictor gives which misses at which bandwidth (L10): every predictor as it comes, on the
//! demands of real decoders, in a simulated hard constant bandwidth server.

mod demands;
/// The server that onbeat-decide's own tests use.
#[path = "../../../../crates/decide/tests/simulation/mod.rs"]
pub(crate) mod simulation;

use onbeat_decide::predictor::{BuildPredictor, Parameters, Percentile, Predictor, statistical};
use onbeat_lfspp::predictor::{Binary, BinarySteps, Rate, mean_sigma};
use onbeat_model::{Demand, Instant, Job, Reservation, Span};

use crate::machine::Machine;
use crate::results::{Ran, Table, percent};
use crate::statistics::mean;
use demands::Demands;
use simulation::{Outcome, Scene, play};

/// onbeat's own.
const DEFAULT: &str = "percentile, learnt spread";

fn predictors() -> [(&'static str, BuildPredictor, Parameters); 6] {
    let usual = Parameters::default();
    let papers = Parameters {
        window: 100,
        overruns: 1.0 - 0.95,
        ..usual
    };
    [
        ("rate (LFS++)", |p| SampledRate::build(p, false), usual),
        (
            "rate, raised at once",
            |p| SampledRate::build(p, true),
            usual,
        ),
        ("mean-sigma", |p| mean_sigma(p, 3.0), usual),
        (DEFAULT, Percentile::build, usual),
        ("statistical (GRACE-OS)", statistical, papers),
        (
            "binary (LFS)",
            |_| Box::new(Binary::new(BinarySteps::default())),
            usual,
        ),
    ]
}

/// The paper's rate, which is told at a job's end what was executed since the last sample.
struct SampledRate {
    rate: Rate,
    sampled: Instant,
    executed: Span,
}

impl SampledRate {
    fn build(parameters: Parameters, is_raised: bool) -> Box<dyn Predictor> {
        Box::new(Self {
            rate: Rate::new(parameters, Rate::SAMPLING, is_raised),
            sampled: Instant::ZERO + Span::from_secs(1),
            executed: Span::ZERO,
        })
    }
}

impl Predictor for SampledRate {
    fn job(&mut self, job: &Job, demand: &Demand) {
        self.rate.job(job, demand);
        self.executed += job.executed;
        let over = job.woke.since(self.sampled);
        if over >= Rate::SAMPLING {
            self.rate.sampled(std::mem::take(&mut self.executed), over);
            self.sampled = job.woke;
        }
    }

    fn exhausted(&mut self, at: Instant, held: Reservation) {
        self.rate.exhausted(at, held);
    }

    fn rate_changed(&mut self, period: Span) {
        self.rate.rate_changed(period);
    }

    fn speed_changed(&mut self, factor: f64) {
        self.rate.speed_changed(factor);
    }

    fn runtime(&self, period: Span) -> Option<Span> {
        self.rate.runtime(period)
    }
}

/// onbeat's own on each program's demands, and each over all of them.
pub(crate) fn run(machine: &Machine) -> anyhow::Result<()> {
    let programs = Demands::all()?;
    let (mut rows, mut means) = (Vec::new(), Vec::new());
    for (predictor, build, parameters) in predictors() {
        let on = |demands: &Demands| {
            let scene = Scene {
                window: parameters.window,
                ..Scene::of(demands.period, demands.jobs.clone())
            };
            play(&scene, &mut *build(parameters))
        };
        let outcomes: Vec<Outcome> = programs.iter().map(on).collect();
        let of = |figure: fn(&Outcome) -> f64| outcomes.iter().map(figure).collect::<Vec<_>>();
        let (misses, ratios) = (of(|o| o.misses), of(|o| o.reserved_over_used));
        means.push(("mean of all", predictor, mean(&misses), mean(&ratios)));
        if predictor == DEFAULT {
            let figures = misses.into_iter().zip(ratios);
            let each = programs.iter().zip(figures);
            rows.extend(
                each.map(|(demands, (misses, ratio))| (demands.name, predictor, misses, ratio)),
            );
        }
    }
    rows.extend(means);
    let table = Table::of(rows, |(demands, predictor, misses, ratio)| {
        [
            ("demands", demands.to_owned()),
            ("predictor", predictor.to_owned()),
            ("misses", percent(misses, 2)),
            ("reserved / used", format!("{ratio:.2}")),
        ]
    });
    let ran = Ran::computed(machine, "recorded demands in a simulated hard server");
    machine.publish(&ran, "predictors", &table);
    Ok(())
}
