//! Prometheus' text format, version 0.0.4: the one that Prometheus itself and node_exporter's
//! textfile collector both read.

use std::fmt::Write;

use crate::table::Metric;

pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

#[derive(Debug, Default)]
pub(crate) struct MetricsText {
    text: String,
}

impl MetricsText {
    pub(crate) fn metric<'a, const LABELS: usize>(
        &mut self,
        metric: &Metric,
        series: impl IntoIterator<Item = ([&'a str; LABELS], f64)>,
    ) {
        let Metric {
            name, kind, help, ..
        } = metric;
        let kind = kind.name();
        // Writing into a String cannot fail.
        let _ = write!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
        for (values, value) in series {
            self.text.push_str(name);
            for (number, (label, of)) in metric.labels.iter().zip(values).enumerate() {
                self.text.push(if number == 0 { '{' } else { ',' });
                self.text.push_str(label);
                self.text.push_str("=\"");
                escape(of, &mut self.text);
                self.text.push('"');
            }
            if !metric.labels.is_empty() {
                self.text.push('}');
            }
            let _ = writeln!(self.text, " {value}");
        }
    }

    pub(crate) fn single(&mut self, metric: &Metric, value: f64) {
        self.metric(metric, [([], value)]);
    }

    pub(crate) fn finish(self) -> String {
        self.text
    }
}

fn escape(value: &str, to: &mut String) {
    for character in value.chars() {
        match character {
            '\\' => to.push_str("\\\\"),
            '"' => to.push_str("\\\""),
            '\n' => to.push_str("\\n"),
            other => to.push(other),
        }
    }
}
