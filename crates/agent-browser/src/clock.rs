//! The clock of recorded pages: they see the time of their recording, so that what they ask for by date is what was
//! recorded.

use std::collections::BTreeMap;

use serde_json::json;

/// Returns a script for new documents. `shifts` has the milliseconds to add to the time, by the origin of pages.
///
/// `Date` alone is changed: timers and `performance` measure durations, which are the same.
pub(crate) fn script(shifts: &BTreeMap<String, i64>) -> String {
    format!(
        "(() => {{
            const shift = {}[location.origin];
            if (shift === undefined) return;
            const Own = Date;
            const now = () => Own.now() + shift;
            const Recorded = new Proxy(Own, {{
                apply: () => new Own(now()).toString(),
                construct: (target, given, made) =>
                    Reflect.construct(target, given.length ? given : [now()], made === Recorded ? target : made),
                get: (target, key) => key === 'now' ? now : Reflect.get(target, key),
            }});
            Own.prototype.constructor = Recorded;
            Date = Recorded;
        }})()",
        json!(shifts)
    )
}
